package enginetest

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
)

// label marks what the contract makes.
const label = "lab.contract"

// contract is one run of the suite.
type contract struct {
	eng engine.Engine
	img engine.Image
	run string // in every name and label
}

// Contract is what every engine.Engine promises, method by method, tried on a
// real one with containers of img, a probe's image. It ends with a look for
// what is left.
func Contract(t *testing.T, eng engine.Engine, img engine.Image) {
	c := &contract{eng: eng, img: img, run: fmt.Sprintf("labcontract%d", os.Getpid())}
	require.NoError(t, eng.EnsureImage(t.Context(), img))
	for name, test := range map[string]func(*testing.T){
		"facts":            c.facts,
		"image":            c.image,
		"life":             c.life,
		"attach":           c.attach,
		"restart":          c.restart,
		"kill":             c.kill,
		"pause and rename": c.pauseAndRename,
		"not found":        c.notFound,
		"exists":           c.exists,
		"volume":           c.volume,
		"volume by prefix": c.volumeByPrefix,
		"volume in use":    c.volumeInUse,
		"rm and volumes":   c.rmAndVolumes,
		"bind and tmpfs":   c.bindAndTmpfs,
		"read-only":        c.readOnly,
		"remove by itself": c.removeByItself,
		"caller gives up":  c.callerGivesUp,
		"pods":             c.pods,
		"kubes":            c.kubes,
		"secrets":          c.secrets,
		"archives":         c.archives,
	} {
		t.Run(name, test)
	}
	left, err := eng.Labelled(t.Context(), label)
	require.NoError(t, err)
	left = slices.DeleteFunc(left, func(o engine.Object) bool { return o.Label != c.run })
	require.Empty(t, left, "left behind")
}

// name is a name of this run.
func (c *contract) name(t *testing.T, thing string) string {
	t.Helper()
	return c.run + "-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, filepath.Base(t.Name())) + "-" + thing
}

func (c *contract) labels() map[string]string { return map[string]string{label: c.run} }

// create makes a container that is removed when the test ends.
func (c *contract) create(t *testing.T, thing string, change func(*engine.ContainerSpec)) string {
	t.Helper()
	spec := engine.ContainerSpec{Name: c.name(t, thing), Image: c.img.Ref, Labels: c.labels()}
	if change != nil {
		change(&spec)
	}
	id, err := c.eng.Create(t.Context(), spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		err := c.eng.Remove(context.Background(), id, engine.RemoveOptions{Force: true, Volumes: true})
		var gone *engine.NotFoundError
		if err != nil {
			require.ErrorAs(t, err, &gone)
		}
	})
	return id
}

func (c *contract) running(t *testing.T, thing string, change func(*engine.ContainerSpec)) string {
	t.Helper()
	id := c.create(t, thing, change)
	require.NoError(t, c.eng.Start(t.Context(), id))
	return id
}

// mount changes a spec to have one more mount.
func mount(m engine.Mount) func(*engine.ContainerSpec) {
	return func(s *engine.ContainerSpec) { s.Mounts = append(s.Mounts, m) }
}

// probe speaks with the process that runs in a container now.
type probe struct {
	t      *testing.T
	client *wire.Client
}

func (c *contract) probe(t *testing.T, id string) probe {
	t.Helper()
	stream, err := c.eng.Attach(t.Context(), id)
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	return probe{t, wire.NewClient(stream)}
}

func (p probe) call(req wire.Request) (wire.Reply, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	return p.client.Call(ctx, req)
}

func (p probe) ask(req wire.Request) wire.Reply {
	p.t.Helper()
	reply, err := p.call(req)
	require.NoError(p.t, err)
	return reply
}

func (p probe) instance() string {
	p.t.Helper()
	return p.ask(wire.Request{Op: wire.Hello}).Hello.Instance
}

func note(path, nonce string) *wire.Item { return &wire.Item{Kind: "file", Path: path, Nonce: nonce} }

func (p probe) writes(path string) {
	p.t.Helper()
	reply := p.ask(wire.Request{Op: wire.Write, Item: note(path, "n1")})
	require.Nil(p.t, reply.Error)
	require.True(p.t, reply.Found.Present)
}

func (p probe) finds(path string) bool {
	p.t.Helper()
	reply := p.ask(wire.Request{Op: wire.Read, Item: note(path, "")})
	require.Nil(p.t, reply.Error)
	return reply.Found.Present
}

// state inspects a container.
func (c *contract) state(t *testing.T, id string) engine.Container {
	t.Helper()
	d, err := c.eng.Inspect(t.Context(), id)
	require.NoError(t, err)
	return d
}

func (c *contract) makeVolume(t *testing.T, thing string) string {
	t.Helper()
	name := c.name(t, thing)
	require.NoError(t, c.eng.CreateVolume(t.Context(), engine.VolumeSpec{Name: name, Labels: c.labels()}))
	t.Cleanup(func() { _ = c.eng.RemoveVolume(context.Background(), name, false) })
	return name
}

func requireNotFound(t *testing.T, err error, kind string) {
	t.Helper()
	var gone *engine.NotFoundError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, kind, gone.Kind)
	require.NotNil(t, gone.Err, "the engine's own words")
}

func (c *contract) facts(t *testing.T) {
	f := c.eng.Facts()
	require.Equal(t, "podman", f.Name)
	require.Regexp(t, `^\d+\.\d+\.\d+`, f.Version)
	require.Regexp(t, `^\d+\.\d+\.\d+`, f.APIVersion)
	require.NotEmpty(t, f.URL)
	require.Contains(t, []string{"found", "started by the lab"}, f.Service)
	require.NotEmpty(t, f.StorageDriver)
	require.NotEmpty(t, f.Runtime)
	require.NotEmpty(t, f.Cgroups)
	require.NotEmpty(t, f.Kernel)
	require.NotEmpty(t, f.OS)
	require.Equal(t, f.Remote, !c.eng.Local())
}

func (c *contract) image(t *testing.T) {
	ctx := t.Context()
	id, err := c.eng.ImageID(ctx, c.img.Ref)
	require.NoError(t, err)
	require.NotEmpty(t, id)
	there := engine.Image{Ref: c.img.Ref, Archive: func() (io.ReadCloser, error) {
		return nil, errors.New("an image that is there is not made again")
	}}
	require.NoError(t, c.eng.EnsureImage(ctx, there))
	_, err = c.eng.ImageID(ctx, "localhost/"+c.run+":none")
	requireNotFound(t, err, "image")
	requireNotFound(t, c.eng.RemoveImage(ctx, "localhost/"+c.run+":none", false), "image")
	broken := engine.Image{Ref: "localhost/" + c.run + ":broken", Archive: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("this is no archive")), nil
	}}
	require.Error(t, c.eng.EnsureImage(ctx, broken))
	_, err = c.eng.ImageID(ctx, broken.Ref)
	requireNotFound(t, err, "image")
}

func (c *contract) life(t *testing.T) {
	ctx := t.Context()
	id := c.create(t, "app", nil)
	d := c.state(t, id)
	require.Equal(t, id, d.ID)
	require.Equal(t, c.name(t, "app"), d.Name)
	require.Equal(t, "created", d.State)
	require.Zero(t, d.PID)
	image, err := c.eng.ImageID(ctx, c.img.Ref)
	require.NoError(t, err)
	require.Equal(t, image, d.ImageID)

	require.NoError(t, c.eng.Start(ctx, d.Name))
	d = c.state(t, d.Name)
	require.Equal(t, "running", d.State)
	require.NotZero(t, d.PID)
	require.False(t, d.Started.IsZero())

	// The probe leaves when it is asked to, once it is up: no grace period
	// passes.
	c.probe(t, id).instance()
	began := time.Now()
	require.NoError(t, c.eng.Stop(ctx, id, 30*time.Second))
	require.Less(t, time.Since(began), 20*time.Second)
	d = c.state(t, id)
	require.Equal(t, "exited", d.State)
	require.Zero(t, d.PID)
	code, err := c.eng.Wait(ctx, id)
	require.NoError(t, err)
	require.Equal(t, d.ExitCode, code)

	require.NoError(t, c.eng.Start(ctx, id))
	require.Error(t, c.eng.Remove(ctx, id, engine.RemoveOptions{}), "a running container goes by force only")
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true}))
	_, err = c.eng.Inspect(ctx, id)
	requireNotFound(t, err, "container")
}

func (c *contract) attach(t *testing.T) {
	ctx := t.Context()
	id := c.create(t, "app", nil)
	// On a created container the stream stands before the process exists:
	// nothing it says is missed.
	p := c.probe(t, id)
	require.NoError(t, c.eng.Start(ctx, id))
	require.Equal(t, 1, p.ask(wire.Request{Op: wire.Hello}).Hello.PID)
	require.Equal(t, p.instance(), p.instance())

	// Large lines come through in one piece.
	p.writes("/tmp/" + strings.Repeat("d/", 1000) + "f")

	// The end of the process is the end of the stream.
	_, err := p.call(wire.Request{Op: wire.Crash, Code: 7})
	require.ErrorIs(t, err, io.EOF)
	code, err := c.eng.Wait(ctx, id)
	require.NoError(t, err)
	require.Equal(t, 7, code)

	_, err = c.eng.Attach(ctx, c.name(t, "none"))
	requireNotFound(t, err, "container")
}

func (c *contract) restart(t *testing.T) {
	id := c.running(t, "app", nil)
	p := c.probe(t, id)
	p.writes("/note")
	before, who := c.state(t, id), p.instance()
	require.NoError(t, c.eng.Restart(t.Context(), id, 10*time.Second))
	after, p := c.state(t, id), c.probe(t, id)
	require.Equal(t, before.ID, after.ID)
	require.True(t, after.Started.After(before.Started))
	require.NotEqual(t, who, p.instance())
	require.True(t, p.finds("/note"))
}

func (c *contract) kill(t *testing.T) {
	ctx := t.Context()
	for _, signal := range []string{"KILL", "SIGKILL", "9"} {
		id := c.running(t, "app"+strings.ToLower(signal), nil)
		require.NoError(t, c.eng.Kill(ctx, id, signal))
		code, err := c.eng.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, 137, code)
		require.Error(t, c.eng.Kill(ctx, id, signal), "nothing runs any more")
	}
}

func (c *contract) pauseAndRename(t *testing.T) {
	ctx := t.Context()
	id := c.running(t, "app", nil)
	err := c.eng.Pause(ctx, id)
	var unsupported *engine.UnsupportedError
	if errors.As(err, &unsupported) {
		require.Contains(t, unsupported.Needs, "cgroups v2")
	} else {
		require.NoError(t, err)
		require.Equal(t, "paused", c.state(t, id).State)
		require.NoError(t, c.eng.Unpause(ctx, id))
	}
	require.Equal(t, "running", c.state(t, id).State)
	require.NoError(t, c.eng.Rename(ctx, id, c.name(t, "renamed")))
	require.Equal(t, c.name(t, "renamed"), c.state(t, id).Name)
	_, err = c.eng.Inspect(ctx, c.name(t, "app"))
	requireNotFound(t, err, "container")
}

// notFound: each method about a thing that is not there says so by type.
func (c *contract) notFound(t *testing.T) {
	ctx, none := t.Context(), c.name(t, "none")
	for what, call := range map[string]func() error{
		"start":   func() error { return c.eng.Start(ctx, none) },
		"stop":    func() error { return c.eng.Stop(ctx, none, 0) },
		"restart": func() error { return c.eng.Restart(ctx, none, 0) },
		"kill":    func() error { return c.eng.Kill(ctx, none, "KILL") },
		"pause":   func() error { return c.eng.Pause(ctx, none) },
		"unpause": func() error { return c.eng.Unpause(ctx, none) },
		"rename":  func() error { return c.eng.Rename(ctx, none, none+"2") },
		"wait":    func() error { _, err := c.eng.Wait(ctx, none); return err },
		"inspect": func() error { _, err := c.eng.Inspect(ctx, none); return err },
		"remove":  func() error { return c.eng.Remove(ctx, none, engine.RemoveOptions{}) },
		// A forced removal says it too: it is how a cleanup knows.
		"remove by force": func() error { return c.eng.Remove(ctx, none, engine.RemoveOptions{Force: true, Volumes: true}) },
	} {
		t.Run(what, func(t *testing.T) { requireNotFound(t, call(), "container") })
	}
	_, err := c.eng.InspectVolume(ctx, none)
	requireNotFound(t, err, "volume")
	requireNotFound(t, c.eng.RemoveVolume(ctx, none, false), "volume")
	requireNotFound(t, c.eng.RemoveVolume(ctx, none, true), "volume")
	requireNotFound(t, c.eng.RemovePod(ctx, none, true), "pod")
	requireNotFound(t, c.eng.RemoveSecret(ctx, none), "secret")
}

func (c *contract) exists(t *testing.T) {
	ctx := t.Context()
	c.create(t, "app", nil)
	_, err := c.eng.Create(ctx, engine.ContainerSpec{Name: c.name(t, "app"), Image: c.img.Ref})
	var taken *engine.ExistsError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "container", taken.Kind)

	name := c.makeVolume(t, "data")
	err = c.eng.CreateVolume(ctx, engine.VolumeSpec{Name: name})
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "volume", taken.Kind)

	_, err = c.eng.Create(ctx, engine.ContainerSpec{Name: c.name(t, "noimage"), Image: "localhost/" + c.run + ":none"})
	require.Error(t, err)
	_, err = c.eng.Inspect(ctx, c.name(t, "noimage"))
	requireNotFound(t, err, "container")
}

func (c *contract) volume(t *testing.T) {
	ctx := t.Context()
	name := c.makeVolume(t, "data")
	v, err := c.eng.InspectVolume(ctx, name)
	require.NoError(t, err)
	require.Equal(t, name, v.Name)
	require.Equal(t, c.run, v.Labels[label])
	require.NotEmpty(t, v.Mountpoint)
	require.False(t, v.Anonymous)

	// Data outlives the container that wrote it.
	at := mount(engine.Mount{Kind: "volume", Source: name, Target: "/data"})
	id := c.running(t, "one", at)
	c.probe(t, id).writes("/data/note")
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true, Volumes: true}))
	id = c.running(t, "two", at)
	require.True(t, c.probe(t, id).finds("/data/note"))
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true, Volumes: true}))

	// A volume nobody made beforehand is made by the engine.
	auto := c.name(t, "auto")
	id = c.running(t, "three", mount(engine.Mount{Kind: "volume", Source: auto, Target: "/data"}))
	t.Cleanup(func() { _ = c.eng.RemoveVolume(context.Background(), auto, false) })
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true, Volumes: true}))
	_, err = c.eng.InspectVolume(ctx, auto)
	require.NoError(t, err, "a named volume is not its container's")
}

// volumeByPrefix: Podman takes a unique prefix of a name for the name. Nothing
// but the volume of exactly that name may be looked at or removed.
func (c *contract) volumeByPrefix(t *testing.T) {
	ctx := t.Context()
	long := c.makeVolume(t, "data-of-somebody")
	short := c.name(t, "data")
	_, err := c.eng.InspectVolume(ctx, short)
	requireNotFound(t, err, "volume")
	requireNotFound(t, c.eng.RemoveVolume(ctx, short, false), "volume")
	requireNotFound(t, c.eng.RemoveVolume(ctx, short, true), "volume")
	_, err = c.eng.InspectVolume(ctx, long)
	require.NoError(t, err)
}

func (c *contract) volumeInUse(t *testing.T) {
	ctx := t.Context()
	name := c.makeVolume(t, "data")
	id := c.create(t, "app", mount(engine.Mount{Kind: "volume", Source: name, Target: "/data"}))
	var used *engine.InUseError
	require.ErrorAs(t, c.eng.RemoveVolume(ctx, name, false), &used)
	require.Equal(t, name, used.Name)
	require.Equal(t, "created", c.state(t, id).State, "its container is untouched")
	require.NoError(t, c.eng.RemoveVolume(ctx, name, true))
	_, err := c.eng.Inspect(ctx, id)
	requireNotFound(t, err, "container")
}

func (c *contract) rmAndVolumes(t *testing.T) {
	ctx := t.Context()
	anonymous := func(t *testing.T, thing string) (id, volume string) {
		t.Helper()
		id = c.create(t, thing, mount(engine.Mount{Kind: "anonymous", Target: "/data"}))
		d := c.state(t, id)
		require.Len(t, d.Mounts, 1)
		v, err := c.eng.InspectVolume(ctx, d.Mounts[0].Name)
		require.NoError(t, err)
		require.True(t, v.Anonymous)
		return id, v.Name
	}
	id, volume := anonymous(t, "keeps")
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true}))
	_, err := c.eng.InspectVolume(ctx, volume)
	require.NoError(t, err, "without volumes, it stays")
	require.NoError(t, c.eng.RemoveVolume(ctx, volume, false))

	id, volume = anonymous(t, "takes")
	require.NoError(t, c.eng.Remove(ctx, id, engine.RemoveOptions{Force: true, Volumes: true}))
	_, err = c.eng.InspectVolume(ctx, volume)
	requireNotFound(t, err, "volume")
}

func (c *contract) bindAndTmpfs(t *testing.T) {
	dir := StateDir(t)
	id := c.running(t, "app", func(s *engine.ContainerSpec) {
		s.Mounts = []engine.Mount{
			{Kind: "bind", Source: dir, Target: "/data"},
			{Kind: "tmpfs", Target: "/mem"},
		}
	})
	p := c.probe(t, id)
	p.writes("/data/note")
	p.writes("/mem/note")
	if c.eng.Local() {
		require.FileExists(t, filepath.Join(dir, "note"))
	}
	require.NoError(t, c.eng.Restart(t.Context(), id, 0))
	p = c.probe(t, id)
	require.True(t, p.finds("/data/note"))
	require.False(t, p.finds("/mem/note"))

	// A folder that is not there is an error, and stays not there.
	none := filepath.Join(dir, "none")
	_, err := c.eng.Create(t.Context(), engine.ContainerSpec{
		Name: c.name(t, "none"), Image: c.img.Ref, Mounts: []engine.Mount{{Kind: "bind", Source: none, Target: "/data"}},
	})
	require.Error(t, err)
	require.NoDirExists(t, none)
	require.NoError(t, c.eng.Remove(t.Context(), id, engine.RemoveOptions{Force: true}))
}

func (c *contract) readOnly(t *testing.T) {
	id := c.running(t, "app", func(s *engine.ContainerSpec) {
		s.ReadOnly = true
		s.Mounts = []engine.Mount{{Kind: "anonymous", Target: "/data", Options: []string{"ro"}}}
	})
	p := c.probe(t, id)
	for _, path := range []string{"/note", "/data/note"} {
		reply := p.ask(wire.Request{Op: wire.Write, Item: note(path, "n1")})
		require.NotNil(t, reply.Error, path)
		require.Equal(t, wire.CodeReadOnly, reply.Error.Code)
	}
	p.writes("/tmp/note")
}

// removeByItself: a container run with Remove goes when its process ends, and
// takes its anonymous volumes.
func (c *contract) removeByItself(t *testing.T) {
	ctx := t.Context()
	id := c.running(t, "app", func(s *engine.ContainerSpec) {
		s.Remove = true
		s.Mounts = []engine.Mount{{Kind: "anonymous", Target: "/data"}}
	})
	volume := c.state(t, id).Mounts[0].Name
	c.probe(t, id).instance()
	require.NoError(t, c.eng.Stop(ctx, id, 10*time.Second))
	require.Eventually(t, func() bool {
		_, err := c.eng.Inspect(ctx, id)
		var gone *engine.NotFoundError
		return errors.As(err, &gone)
	}, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := c.eng.InspectVolume(ctx, volume)
		var gone *engine.NotFoundError
		return errors.As(err, &gone)
	}, 20*time.Second, 20*time.Millisecond)
}

// callerGivesUp: a call ends soon after its context does, with its cause.
func (c *contract) callerGivesUp(t *testing.T) {
	id := c.running(t, "app", nil)
	cause := errors.New("the learner went home")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, cause)
	defer cancel()
	began := time.Now()
	_, err := c.eng.Wait(ctx, id)
	require.ErrorIs(t, err, cause)
	require.Less(t, time.Since(began), 5*time.Second)
	_, err = c.eng.Attach(ctx, id)
	require.ErrorIs(t, err, cause)
	require.Equal(t, "running", c.state(t, id).State)
}

func (c *contract) pods(t *testing.T) {
	ctx := t.Context()
	name := c.name(t, "pod")
	_, err := c.eng.CreatePod(ctx, engine.PodSpec{Name: name, Labels: c.labels()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.eng.RemovePod(context.Background(), name, true) })
	_, err = c.eng.CreatePod(ctx, engine.PodSpec{Name: name})
	var taken *engine.ExistsError
	require.ErrorAs(t, err, &taken)

	found, err := c.eng.Labelled(ctx, label)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(found, func(o engine.Object) bool {
		return o.Kind == "pod" && o.Name == name && o.Label == c.run
	}))

	id := c.create(t, "app", func(s *engine.ContainerSpec) { s.Pod = name })
	require.NoError(t, c.eng.StartPod(ctx, name))
	require.Equal(t, "running", c.state(t, id).State)
	c.probe(t, id).instance()
	require.NoError(t, c.eng.StopPod(ctx, name, 10*time.Second))
	require.NotEqual(t, "running", c.state(t, id).State)
	require.NoError(t, c.eng.RemovePod(ctx, name, true))
	_, err = c.eng.Inspect(ctx, id)
	requireNotFound(t, err, "container")
}

// kubes: what Kubernetes YAML describes is made, found by its labels, and taken
// down; a claim's volume stays.
func (c *contract) kubes(t *testing.T) {
	ctx := t.Context()
	pod, volume, empty := c.name(t, "pod"), c.name(t, "claim"), c.name(t, "empty")
	claim := fmt.Appendf(nil, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, labels: {%s: %s}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`, volume, label, c.run)
	yaml := fmt.Appendf(nil, `
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {%s: %s}}
spec:
  containers:
  - {name: app, image: %q, volumeMounts: [{name: claim, mountPath: /claim}, {name: %s, mountPath: /empty}]}
  volumes:
  - {name: claim, persistentVolumeClaim: {claimName: %s}}
  - {name: %s, emptyDir: {}}
`, pod, label, c.run, c.img.Ref, empty, volume, empty)
	before, err := c.eng.PauseImages(ctx)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		_ = c.eng.RemovePod(ctx, pod, true)
		_ = c.eng.RemoveVolume(ctx, volume, true)
		_ = c.eng.RemoveVolume(ctx, empty, true)
		after, err := c.eng.PauseImages(ctx)
		require.NoError(t, err)
		for _, ref := range after {
			if len(before) == 0 {
				_ = c.eng.RemoveImage(ctx, ref, false) // another test may use it
			}
		}
	})
	require.Error(t, c.eng.PlayKube(ctx, []byte("kind: Nothing\n")))
	require.NoError(t, c.eng.PlayKube(ctx, claim))
	require.NoError(t, c.eng.PlayKube(ctx, yaml))
	require.Error(t, c.eng.PlayKube(ctx, yaml), "the pod is there")

	found, err := c.eng.Labelled(ctx, label)
	require.NoError(t, err)
	for _, want := range []engine.Object{{Kind: "pod", Name: pod}, {Kind: "container", Name: pod + "-app"}, {Kind: "volume", Name: volume}} {
		require.True(t, slices.ContainsFunc(found, func(o engine.Object) bool {
			return o.Kind == want.Kind && o.Name == want.Name && o.Label == c.run
		}), want)
	}
	require.Equal(t, "running", c.state(t, pod+"-app").State)
	refs, err := c.eng.PauseImages(ctx)
	require.NoError(t, err)
	for _, ref := range refs {
		var used *engine.InUseError
		require.ErrorAs(t, c.eng.RemoveImage(ctx, ref, false), &used)
	}

	require.NoError(t, c.eng.DownKube(ctx, yaml, false))
	_, err = c.eng.Inspect(ctx, pod+"-app")
	requireNotFound(t, err, "container")
	_, err = c.eng.InspectVolume(ctx, empty)
	requireNotFound(t, err, "volume")
	_, err = c.eng.InspectVolume(ctx, volume)
	require.NoError(t, err)

	require.NoError(t, c.eng.PlayKube(ctx, yaml))
	err = c.eng.DownKube(ctx, yaml, true)
	var unsupported *engine.UnsupportedError
	if errors.As(err, &unsupported) {
		require.NoError(t, c.eng.DownKube(ctx, yaml, false))
		return
	}
	require.NoError(t, err)
	_, err = c.eng.InspectVolume(ctx, volume)
	requireNotFound(t, err, "volume")
}

func (c *contract) secrets(t *testing.T) {
	ctx := t.Context()
	name := c.name(t, "secret")
	require.NoError(t, c.eng.CreateSecret(ctx, name, "hush\n"))
	t.Cleanup(func() { _ = c.eng.RemoveSecret(context.Background(), name) })
	id := c.running(t, "app", func(s *engine.ContainerSpec) {
		s.Secrets = []engine.SecretMount{{Name: name, Target: "token"}}
	})
	reply := c.probe(t, id).ask(wire.Request{Op: wire.Read, Item: note("/run/secrets/token", "")})
	require.Nil(t, reply.Error)
	require.Equal(t, "hush\n", reply.Found.Excerpt)
	require.NoError(t, c.eng.RemoveSecret(ctx, name))
}

func (c *contract) archives(t *testing.T) {
	ctx := t.Context()
	id := c.running(t, "app", nil)
	c.probe(t, id).writes("/note")
	out, err := c.eng.CopyOut(ctx, id, "/note")
	require.NoError(t, err)
	r := tar.NewReader(bufio.NewReader(out))
	h, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "note", h.Name)
	require.NoError(t, out.Close())

	ref := "localhost/" + c.run + ":committed"
	image, err := c.eng.Commit(ctx, id, ref)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.eng.RemoveImage(context.Background(), ref, true) })
	got, err := c.eng.ImageID(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(image, "sha256:"), got)
	other := c.running(t, "other", func(s *engine.ContainerSpec) { s.Image = ref })
	require.True(t, c.probe(t, other).finds("/note"))
	require.NoError(t, c.eng.Remove(ctx, other, engine.RemoveOptions{Force: true}))
	require.NoError(t, c.eng.RemoveImage(ctx, ref, false))
}
