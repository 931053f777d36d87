package bindings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"persistencelab/lab/engine"
)

// host is what was learned of this host with a throw-away container: what a
// service the lab starts here must be told so that containers start. The zero
// value changes nothing.
type host struct {
	Runtime string        `json:"runtime,omitempty"` // OCI runtime to use instead of the default
	Limits  bool          `json:"limits,omitempty"`  // ulimits must be given, at what this process has at most
	Because []string      `json:"because,omitempty"` // the refusals, in the runtime's words
	Facts   *engine.Facts `json:"facts,omitempty"`   // of a service so started
	Version string        `json:"version,omitempty"` // of the podman binary

	file string // where it is remembered; "" for nowhere
}

// ulimit is one resource limit, with Podman's name for it.
type ulimit struct {
	name  string
	value uint64
}

// containerLimits are the ulimits sent where Podman's defaults exceed what
// the service may give (4.3.1 without CAP_SYS_RESOURCE): small enough for
// any host, large enough for a probe. 1024 open files is the kernel's own
// default soft limit; nproc counts per user, and 4096 is systemd's.
var containerLimits = []ulimit{{"nofile", 1024}, {"nproc", 4096}}

// notes says for people what was changed.
func (h *host) notes() []string {
	var n []string
	if h.Runtime != "" {
		n = append(n, "oci runtime "+h.Runtime+" instead of the default, which refuses this host's cgroups")
	}
	if h.Limits {
		n = append(n, limitsNote())
	}
	return n
}

func limitsNote() string {
	var s []string
	for _, l := range containerLimits {
		s = append(s, fmt.Sprintf("%s=%d", l.name, l.value))
	}
	return "ulimits " + strings.Join(s, ", ") + ": podman's defaults exceed this host's hard limits"
}

// writeConf writes what h changes as a containers.conf for the service alone
// and gives the environment entry that makes Podman read it; "" for nothing
// to change. Through the file it also reaches pods' infra containers.
func (h *host) writeConf(opts Options) (string, error) {
	if h.Runtime == "" && !h.Limits && opts.Root == "" {
		return "", nil
	}
	var conf strings.Builder
	if h.Limits {
		conf.WriteString("[containers]\ndefault_ulimits = [")
		for i, l := range containerLimits {
			if i > 0 {
				conf.WriteString(", ")
			}
			fmt.Fprintf(&conf, "\"%s=%d:%d\"", l.name, l.value, l.value)
		}
		conf.WriteString("]\n")
	}
	conf.WriteString("[engine]\n")
	if h.Runtime != "" {
		fmt.Fprintf(&conf, "runtime = %q\n", h.Runtime)
	}
	if opts.Root != "" {
		conf.WriteString(storeConf(opts))
	}
	dir := opts.RunDir
	if opts.Root != "" {
		dir = opts.Root
	}
	file := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		return "", err
	}
	// CONTAINERS_CONF_OVERRIDE adds to the user's files but is known from
	// 4.4 on; before that CONTAINERS_CONF, which replaces them, must do.
	name := "CONTAINERS_CONF_OVERRIDE"
	var major, minor int
	if _, err := fmt.Sscanf(h.Version, "%d.%d", &major, &minor); err == nil && (major < 4 || major == 4 && minor < 4) {
		name = "CONTAINERS_CONF"
	}
	return name + "=" + file, nil
}

// load reads what was learned before; false when nothing was.
func (h *host) load() bool {
	if h.file == "" {
		return false
	}
	b, err := os.ReadFile(h.file)
	return err == nil && json.Unmarshal(b, h) == nil
}

// versionOf asks the podman command for its version; "" when it won't say.
func versionOf(binary string) string {
	out, err := exec.Command(binary, "--version").Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1]
}

// save remembers h. Not being able to costs time, nothing else.
func (h *host) save() {
	if h.file == "" {
		return
	}
	b, err := json.Marshal(h)
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(h.file), 0o700) != nil {
		return
	}
	tmp := h.file + ".new"
	if os.WriteFile(tmp, b, 0o600) == nil {
		_ = os.Rename(tmp, h.file)
	}
}

// limitsFile tells a process its resource limits (proc_pid_limits(5)); where
// there is none, containers run in a machine with limits of its own.
const limitsFile = "/proc/self/limits"

// capabilities are this process's sets, as proc_pid_status(5) writes them;
// none where there is no such file.
func capabilities() []string {
	status, _ := os.ReadFile("/proc/self/status")
	var sets []string
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "Cap") {
			sets = append(sets, line)
		}
	}
	return sets
}

// forget makes the next connection learn anew.
func (h *host) forget() {
	if h.file != "" {
		_ = os.Remove(h.file)
	}
}

// hostFile is where what was learned of a service of the lab's own is kept.
// Its name is made of everything that depends on: this boot, this user, this
// process's limits and capabilities, which the service and its containers
// inherit (raising a hard limit takes CAP_SYS_RESOURCE: setrlimit(2)), the
// podman binary, Podman's configuration files and the store.
func hostFile(binary string, opts Options) string {
	limits, _ := os.ReadFile(limitsFile)
	facts := []any{opts.UID, opts.Root != "", string(limits), capabilities()}
	return cacheFile(opts, append(facts, fileFacts(append(confFiles(), binary))...)...)
}

// foundFile is where what was learned of somebody else's service is kept:
// only for one on this machine, whose restart shows in its socket.
func foundFile(p *Podman, opts Options) string {
	if p.remote {
		return ""
	}
	return learnedFile(opts, p.url)
}

func learnedFile(opts Options, url string) string {
	return cacheFile(opts, append([]any{url}, fileFacts(append(confFiles(), strings.TrimPrefix(url, "unix://")))...)...)
}

// confFiles are the configuration files Podman reads (containers.conf(5)).
func confFiles() []string {
	dirs := []string{"/usr/share/containers", "/etc/containers", "/etc/containers/containers.conf.d"}
	if home, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, "containers"))
	}
	var files []string
	for _, d := range dirs {
		found, _ := filepath.Glob(filepath.Join(d, "*.conf"))
		files = append(files, found...)
	}
	return files
}

// fileFacts tells one state of files from another.
func fileFacts(files []string) []any {
	var facts []any
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			facts = append(facts, f, info.Size(), info.ModTime().UnixNano())
		}
	}
	return facts
}

// cacheFile names the file for what was learned under these facts in this
// boot; "" when nothing is to be kept.
func cacheFile(opts Options, facts ...any) string {
	if opts.CacheDir == "" {
		return ""
	}
	// Podman's own variables name files that replace the usual ones.
	for _, name := range []string{"CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_STORAGE_CONF"} {
		file := os.Getenv(name)
		facts = append(facts, name, file)
		facts = append(facts, fileFacts([]string{file})...)
	}
	sum := sha256.Sum256([]byte(fmt.Sprintln(bootID(), opts.Image.Ref, facts)))
	return filepath.Join(opts.CacheDir, "host-"+hex.EncodeToString(sum[:8])+".json")
}

// HostShell is how the podman command and `podman run` are written on this
// host to reach what Dial would reach, from what was learned when containers
// last ran there: the global options, and the ulimits containers need. It
// reaches nothing and starts nothing.
func HostShell(opts Options) (podman []string, limits []string) {
	podman = []string{"podman"}
	h := &host{}
	t, _ := asked(opts)
	binary, err := exec.LookPath("podman")
	switch {
	case t.url != "":
		podman = append(podman, "--remote", "--url", t.url)
		if t.identity != "" {
			podman = append(podman, "--identity", t.identity)
		}
		h.file = learnedFile(opts, t.url)
		h.load()
	case err == nil:
		h.file = hostFile(binary, opts)
		known := h.load()
		for _, socket := range localSockets(opts) {
			// What the system's own service needs, its command needs too.
			if !known {
				h.file = learnedFile(opts, "unix://"+socket)
				known = h.load()
			}
		}
		if h.Runtime != "" {
			podman = append(podman, "--runtime", h.Runtime)
		}
	}
	if h.Limits {
		for _, l := range containerLimits {
			limits = append(limits, fmt.Sprintf("%s=%d:%d", l.name, l.value, l.value))
		}
	}
	return podman, limits
}

// RefusedError: this host's Podman can't start a container, in the runtime's
// words, and what to do about it.
type RefusedError struct {
	Err  error
	Hint string
}

func (e *RefusedError) Error() string { return "podman can't start a container here: " + e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// refusal is a way in which hosts refuse containers, and its remedy.
type refusal int

const (
	refusedOtherwise refusal = iota
	refusedRuntime           // the OCI runtime can't do this host's cgroups
	refusedLimits            // ulimits beyond the hard limits
)

// classify reads the runtime's words. They are all there is: Podman wraps
// every failure of the runtime into one kind of error.
func classify(err error) refusal {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "rlimit"):
		return refusedLimits
	case strings.Contains(text, "cgroup"):
		return refusedRuntime
	}
	return refusedOtherwise
}

// tryContainer runs one throw-away container. It is removed also where the
// call that makes it was broken off.
func (p *Podman) tryContainer(ctx context.Context, opts Options) error {
	return p.withContainer(ctx, opts, func(string) error { return nil })
}

// withContainer is tryContainer with something tried on the container.
func (p *Podman) withContainer(ctx context.Context, opts Options, try func(id string) error) error {
	if err := p.EnsureImage(ctx, opts.Image); err != nil {
		return err
	}
	run := opts.RunID
	if run == "" {
		run = fmt.Sprintf("preflight-%d", os.Getpid())
	}
	name := fmt.Sprintf("lab-%s-preflight-%d", run, time.Now().UnixNano())
	if opts.Journal != nil {
		if err := opts.Journal.Add("container", name); err != nil {
			return err
		}
	}
	id, err := p.Create(ctx, engine.ContainerSpec{
		Name: name, Image: opts.Image.Ref, Labels: map[string]string{"lab.run": run},
	})
	if err == nil {
		err = p.Start(ctx, id)
	}
	if err == nil {
		err = try(id)
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	left := p.Remove(clean, name, engine.RemoveOptions{Force: true, Volumes: true})
	var missing *engine.NotFoundError
	if errors.As(left, &missing) {
		left = nil
	}
	if left == nil && ctx.Err() == nil && opts.Journal != nil {
		left = opts.Journal.Gone("container", name)
	}
	return errors.Join(err, left)
}

// adjustOwn learns, one refusal at a time, what a service of the lab's own
// must be told on this host, and gives a connection to one that was told.
func (p *Podman) adjustOwn(ctx context.Context, binary string, h *host, opts Options) (*Podman, error) {
	for {
		err := p.tryContainer(ctx, opts)
		if err == nil {
			h.save()
			return p, nil
		}
		_ = p.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch what := classify(err); {
		case what == refusedLimits && !h.Limits:
			h.Limits = true
		case what == refusedRuntime && h.Runtime == "":
			if _, missing := exec.LookPath("runc"); missing != nil {
				return nil, &RefusedError{Err: err, Hint: "install runc: its cgroups work where crun's do not"}
			}
			h.Runtime = "runc"
		default:
			return nil, &RefusedError{Err: err, Hint: otherwiseHint}
		}
		h.Because = append(h.Because, err.Error())
		if p, err = startService(ctx, binary, h, opts); err != nil {
			return nil, err
		}
	}
}

// adjustFound learns what somebody else's service needs. Ulimits can be sent
// with each container; the runtime is the service's own, so that there only
// a hint is left.
func (p *Podman) adjustFound(ctx context.Context, opts Options) error {
	h := &host{file: foundFile(p, opts)}
	p.host = h
	for known := h.load(); ; {
		if h.Limits {
			p.limits = containerLimits
		}
		if known {
			break
		}
		err := p.tryContainer(ctx, opts)
		if err == nil {
			h.save()
			break
		}
		var down *engine.UnreachableError
		if ctx.Err() != nil || errors.As(err, &down) {
			return err
		}
		switch what := classify(err); {
		case what == refusedLimits && !h.Limits:
			h.Limits = true
		case what == refusedRuntime:
			return &RefusedError{Err: err, Hint: "put runtime = \"runc\" under [engine] in /etc/containers/containers.conf and restart the podman service"}
		default:
			return &RefusedError{Err: err, Hint: otherwiseHint}
		}
	}
	p.adjusted = h.notes()
	return nil
}

// otherwiseHint is for refusals the lab knows no remedy for.
const otherwiseHint = "podman run --rm hello-world shows the same; `lab doctor` looks at each part"
