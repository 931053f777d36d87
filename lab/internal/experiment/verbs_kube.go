package experiment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/kube"
	"persistencelab/scenarios"
)

// Pods that `podman kube play` makes of Kubernetes YAML. The YAML is the
// plan's: what the scenario says of the pod's containers, in Kubernetes'
// words, with names and labels of this run.

// inPod are the variant's containers of a pod.
func (p *Plan) inPod(pod string) []scenarios.Container {
	var cs []scenarios.Container
	for _, c := range p.Variant.Containers {
		if c.Pod == pod {
			cs = append(cs, c)
		}
	}
	return cs
}

// containerName is what a container is called in the engine. Podman puts the
// pod's name before that of a container it makes of YAML.
func (p *Plan) containerName(name string) string {
	if c, ok := p.Variant.Container(name); ok && p.Variant.Played(c.Pod) {
		return p.name(c.Pod) + "-" + name
	}
	return p.name(name)
}

// kubePod is a pod as kube play is given it.
func (p *Plan) kubePod(pod string) kube.Pod {
	k := kube.Pod{Name: p.name(pod), Labels: map[string]string{RunLabel: p.RunID}}
	for _, c := range p.inPod(pod) {
		k.Hostname, k.Restart = c.Hostname, kube.Restart(c.Restart)
		kc := kube.Container{Name: c.Name, Image: p.images[c.Name].Ref, Env: c.Env, User: c.User}
		for _, m := range c.Mounts {
			km := kube.Mount{Kind: kube.Claim, Name: p.source(m), Target: m.Target, ReadOnly: slices.Contains(m.Options, "ro")}
			switch m.Kind {
			case scenarios.EmptyDir:
				km.Kind, km.Name = kube.EmptyDir, p.emptyDir(pod, m)
				if slices.Contains(m.Options, scenarios.OptionMemory) {
					km.Kind = kube.Memory
				}
			case scenarios.Bind:
				km.Kind, km.Path, km.Name = kube.HostPath, p.hostFolder(m), "host-"+strings.Trim(strings.ReplaceAll(m.Source, "/", "-"), "-")
			}
			kc.Mounts = append(kc.Mounts, km)
		}
		k.Containers = append(k.Containers, kc)
	}
	return k
}

// emptyDir is what an emptyDir is called. Podman makes a volume of exactly
// that name, so that two pods which say the same would share one.
func (p *Plan) emptyDir(pod string, m scenarios.Mount) string { return p.name(pod) + "-" + m.Source }

// emptyDirs are the names of a pod's emptyDirs.
func (p *Plan) emptyDirs(pod string) []string {
	var names []string
	for _, c := range p.inPod(pod) {
		for _, m := range c.Mounts {
			if name := p.emptyDir(pod, m); m.Kind == scenarios.EmptyDir && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// claims are the names of the volumes that a pod claims.
func (p *Plan) claims(pod string) []string {
	var names []string
	for _, c := range p.inPod(pod) {
		for _, m := range c.Mounts {
			if name := p.source(m); m.Kind == scenarios.VolumeMount && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// kubeClaim is the claim for a volume. It is a document by itself: played
// together with the pod, 4.3 could not play it a second time ("volume already
// exists"), and 5.4's kube down --force ends in an error.
func (p *Plan) kubeClaim(volume string) []byte {
	return kube.ClaimYAML(volume, map[string]string{RunLabel: p.RunID})
}

// kubeFile is where a person's shell keeps a document.
func (p *Plan) kubeFile(name string) string { return filepath.Join(p.Folder, "kube", name+".yaml") }

// kubePlay is `podman kube play`: first of the claims whose volumes are not
// there, then of the pod.
func (r *runner) kubePlay(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	pod := r.plan.kubePod(st.Pod)
	for _, c := range r.plan.inPod(st.Pod) {
		if err := r.note("container", r.plan.containerName(c.Name)); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(r.plan.claims(st.Pod), r.plan.emptyDirs(st.Pod)) {
		if err := r.note("volume", name); err != nil {
			return err
		}
	}
	if err := errors.Join(r.note("pod", pod.Name), r.notePause(ctx)); err != nil {
		return err
	}
	for _, name := range r.plan.claims(st.Pod) {
		_, err := r.eng.InspectVolume(ctx, name)
		var missing *engine.NotFoundError
		if errors.As(err, &missing) {
			err = r.eng.PlayKube(ctx, r.plan.kubeClaim(name))
		}
		if err != nil {
			return err
		}
	}
	if err := r.eng.PlayKube(ctx, pod.YAML()); err != nil {
		return err
	}
	r.pods[st.Pod] = true
	sr.Proof.Made = "pod " + pod.Name
	for _, c := range r.plan.inPod(st.Pod) {
		proof := Proof{On: c.Name, Before: r.identity(c.Name)}
		l := &live{on: c.Name, name: r.plan.containerName(c.Name)}
		d, err := r.eng.Inspect(ctx, l.name)
		if err != nil {
			return err
		}
		l.id = d.ID
		if proof.Before != nil && proof.Before.ID == l.id {
			return &fault{fmt.Errorf("podman says it made the pod, but its container %s is the one of before", c.Name)}
		}
		r.live[c.Name] = l
		if proof.After, err = r.greet(ctx, l); err != nil {
			return err
		}
		if proof.Before != nil {
			same := proof.Before.ImageID == proof.After.ImageID
			proof.SameImage = &same
		}
		sr.Others = append(sr.Others, proof)
	}
	return nil
}

// joinPlayed opens a session in a container of kube play. It is asked again
// until it answers: a restarted pod is said to be up a moment before its
// containers are (4.3), and a container before its probe listens.
// The price of asking by way of a second process is paid when the pod is
// removed: Podman keeps its monitor in the pod's cgroup for minutes, and takes
// seconds to be rid of that (most of them on cgroup v1).
func (r *runner) joinPlayed(ctx context.Context, l *live) (s *session, err error) {
	var last error
	err = poll(ctx, "an answer of the probe", func() (bool, error) {
		d, err := r.eng.Inspect(ctx, l.id)
		if err != nil || d.State != "running" {
			return false, err
		}
		s, last = openRelay(ctx, r.eng, l.id)
		return last == nil, nil
	})
	if err != nil {
		return nil, errors.Join(err, last)
	}
	return s, nil
}

// keepUp waits until a container of a pod that was started again stays up. A
// pod of kube play stops when its last container has ended, and the process by
// which Podman sees to that may come late: on 4.3.1 after `pod restart` has
// started the next life of the container, and it stops the pod for the end of
// the last one. Who meets that types `podman pod start`; so does the run, and
// the proof says how often.
func (r *runner) keepUp(ctx context.Context, l *live, pod string, proof *Proof) error {
	const long = time.Second
	var since time.Time
	return poll(ctx, "a pod that stays up", func() (bool, error) {
		d, err := r.eng.Inspect(ctx, l.id)
		switch {
		case err != nil:
			return false, err
		case d.State == "running":
			if since.IsZero() {
				since = time.Now()
			}
			return time.Since(since) >= long, nil
		case d.State == "exited" && proof.Again < 10:
			since = time.Time{}
			proof.Again++
			return false, r.eng.StartPod(ctx, pod)
		}
		since = time.Time{}
		return false, nil
	})
}

// kubeDown is `podman kube down`: the pod and its containers are gone, and
// with force what it claims.
func (r *runner) kubeDown(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.removePod(ctx, st, sr, func() error {
		return r.eng.DownKube(ctx, r.plan.kubePod(st.Pod).YAML(), st.Force)
	})
}

// goneWithPod records which of a pod's volumes went with it.
func (r *runner) goneWithPod(ctx context.Context, pod string, sr *StepRecord) error {
	for _, name := range slices.Concat(r.plan.claims(pod), r.plan.emptyDirs(pod)) {
		_, err := r.eng.InspectVolume(ctx, name)
		var missing *engine.NotFoundError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &missing):
			return err
		}
		sr.Others = append(sr.Others, Proof{OldIsGone: missing.Error()})
		if err := r.gone("volume", name); err != nil {
			return err
		}
	}
	return nil
}

// notePause writes down that a pod is about to be made where no pod has left
// its pause image behind: Podman will make one, and what caused it is this
// run. It is the session's, not the plan's: other plans have pods too.
func (r *runner) notePause(ctx context.Context) error {
	refs, err := r.eng.PauseImages(ctx)
	if err != nil || len(refs) > 0 {
		return err
	}
	return r.env.Ledger.Add(PauseImage, pauseName)
}

// PauseImage is the ledger's kind for the image Podman makes for its pods'
// namespaces. It goes when no container uses it: somebody else may by then.
const PauseImage = "pause image"

const pauseName = "localhost/podman-pause"

// removePause removes the pause image, unless somebody uses it.
func removePause(ctx context.Context, eng engine.Engine) error {
	refs, err := eng.PauseImages(ctx)
	if err == nil && len(refs) == 0 {
		return &engine.NotFoundError{Kind: "image", Name: pauseName}
	}
	for _, ref := range refs {
		err = errors.Join(err, eng.RemoveImage(ctx, ref, false))
	}
	return err
}
