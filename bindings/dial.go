package bindings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"go.podman.io/common/pkg/config"

	"persistencelab/lab/engine"
)

// Options is how to reach Podman.
type Options struct {
	URL        string // --url; "" to look for one
	Connection string // --connection: a name from `podman system connection ls`
	Identity   string // --identity: an ssh key

	// Getenv reads the environment; os.Getenv's contract.
	Getenv func(string) string
	UID    int

	// RunDir is the run's own folder: where the private service's socket
	// and settings go.
	RunDir string
	// CacheDir keeps what was learned of this host; "" to learn anew.
	CacheDir string
	// RunID is the run's id: a throw-away container carries it in its label
	// and name. Journal is told of that container; both may be empty.
	RunID   string
	Journal Journal
	// Image is what a throw-away container is made of, to learn what this
	// host refuses.
	Image engine.Image
	// Root, when set, is a store of the lab's own: the service is always
	// one the lab starts, with `--root` and `--runroot` below this folder.
	Root string

	// LookOnly reaches a service for looking alone: no throw-away container
	// is run, so that nothing is learned of whether containers start here,
	// and nothing is remembered.
	LookOnly bool

	// Patience is how long a service is given for its first answer; 0 for
	// the time a service started by its socket needs on a slow disk.
	Patience time.Duration

	Log io.Writer // what Podman's client logs; nil to drop it
}

// Journal is told what Dial does before Dial does it, so that it can be undone
// after any end of this process. An error ends Dial.
type Journal interface {
	// Reached: what follows is made by the service at url; own when the lab
	// started that service.
	Reached(url string, own bool) error
	Add(kind, name string) error
	Gone(kind, name string) error
}

// target is one place where a service may answer.
type target struct {
	url      string
	identity string
	machine  bool
	asked    string // how the user asked for it; "" when the lab looks by itself
}

// NotInstalledError: nothing answers, and podman is not installed, so that no
// service can be started.
type NotInstalledError struct{ Tried []string }

func (e *NotInstalledError) Error() string {
	return "podman is not installed, and no podman service answers"
}

// Dial reaches Podman: --url, --connection, CONTAINER_HOST,
// CONTAINER_CONNECTION, the default of `podman system connection`, the
// socket of the user, the system's socket when root (podman(1),
// podman-remote(1), podman-system-service(1)). What was asked for by name
// must answer. Where nothing was asked for and nothing answers, it starts a
// service of its own.
func Dial(ctx context.Context, opts Options) (*Podman, error) {
	if opts.LookOnly {
		opts.CacheDir = "" // what was not tried must not be remembered as working
	}
	sendLogs(opts.Log)
	p, err := dialWith(ctx, opts)
	if err == nil {
		p.opts = opts
	}
	return p, err
}

func dialWith(ctx context.Context, opts Options) (*Podman, error) {
	if opts.Root != "" {
		return startOwn(ctx, opts)
	}
	t, err := asked(opts)
	if err != nil {
		return nil, err
	}
	if t.url != "" {
		if err := t.check(); err != nil {
			return nil, err
		}
		return connectFound(ctx, t, opts)
	}
	for _, path := range localSockets(opts) {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		// A socket nobody listens on is left over from a service that ended:
		// the next place, or a service of our own, does as well.
		p, err := connectFound(ctx, target{url: "unix://" + path}, opts)
		var down *engine.UnreachableError
		var foreign *ForeignError
		if errors.As(err, &down) || errors.As(err, &foreign) {
			continue
		}
		return p, err
	}
	return startOwn(ctx, opts)
}

func (o *Options) reached(p *Podman) error {
	if o.Journal == nil {
		return nil
	}
	return o.Journal.Reached(p.Service())
}

// connectFound connects to somebody else's service and learns what it takes
// for containers to start there.
func connectFound(ctx context.Context, t target, opts Options) (*Podman, error) {
	p, err := connect(ctx, t, opts.Patience)
	if err != nil {
		return nil, err
	}
	p.asked = t.asked
	if err := opts.reached(p); err != nil {
		return nil, err
	}
	if opts.LookOnly {
		p.host = &host{}
		return p, nil
	}
	if err := p.adjustFound(ctx, opts); err != nil {
		return nil, err
	}
	p.learnFacts()
	return p, nil
}

// asked is the service the user named, or none.
func asked(opts Options) (target, error) {
	switch {
	case opts.URL != "":
		return target{url: opts.URL, identity: opts.Identity, asked: "--url"}, nil
	case opts.Connection != "":
		return namedConnection(opts.Connection, "--connection")
	case opts.Getenv("CONTAINER_HOST") != "":
		return target{
			url:      opts.Getenv("CONTAINER_HOST"),
			identity: opts.Getenv("CONTAINER_SSHKEY"),
			asked:    "CONTAINER_HOST",
		}, nil
	case opts.Getenv("CONTAINER_CONNECTION") != "":
		return namedConnection(opts.Getenv("CONTAINER_CONNECTION"), "CONTAINER_CONNECTION")
	}
	return defaultConnection()
}

// AddressError: what the user asked for is no place where a service can be.
type AddressError struct {
	Asked string // --url, --connection, CONTAINER_HOST, …
	Value string
	Err   error
}

func (e *AddressError) Error() string { return fmt.Sprintf("%s %q: %v", e.Asked, e.Value, e.Err) }
func (e *AddressError) Unwrap() error { return e.Err }

// check finds what can't be an address before anything is tried.
func (t target) check() error {
	u, err := url.Parse(t.url)
	switch {
	case err != nil:
		err = lastWords(err)
	case u.Scheme == "unix" && u.Host+u.Path == "", u.Scheme == "tcp" && u.Host == "", u.Scheme == "ssh" && u.Host == "":
		err = errors.New("it names no place")
	case u.Scheme != "unix" && u.Scheme != "tcp" && u.Scheme != "ssh":
		err = errors.New("it begins with none of unix://, ssh:// and tcp://")
	}
	if err != nil {
		return &AddressError{Asked: t.asked, Value: t.url, Err: err}
	}
	return nil
}

func namedConnection(name, asked string) (target, error) {
	conf, err := config.New(nil)
	if err != nil {
		return target{}, fmt.Errorf("podman's configuration: %w", err)
	}
	c, err := conf.GetConnection(name, false)
	if err != nil {
		return target{}, &AddressError{Asked: asked, Value: name, Err: errors.New("no connection of that name")}
	}
	return target{url: c.URI, identity: c.Identity, machine: c.IsMachine, asked: asked}, nil
}

// defaultConnection is the connection Podman's own configuration names as
// default, if any. Only where one of the files that can name it exists is
// the configuration read: it takes longer than a whole `lab list`.
func defaultConnection() (target, error) {
	conf, err := config.New(nil)
	if err != nil {
		return target{}, nil // podman itself will say what is wrong with its files
	}
	c, err := conf.GetConnection("", true)
	if err != nil {
		return target{}, nil // none is named
	}
	return target{url: c.URI, identity: c.Identity, machine: c.IsMachine, asked: "the default of `podman system connection ls`"}, nil
}

// localSockets are the sockets a local service listens on, the user's first.
func localSockets(opts Options) []string {
	if opts.UID == 0 {
		return []string{"/run/podman/podman.sock"}
	}
	run := opts.Getenv("XDG_RUNTIME_DIR")
	if run == "" {
		run = filepath.Join("/run/user", strconv.Itoa(opts.UID))
	}
	return []string{filepath.Join(run, "podman", "podman.sock")}
}

// startOwn starts a service on a private socket, with what this host needs.
func startOwn(ctx context.Context, opts Options) (*Podman, error) {
	binary, err := exec.LookPath("podman")
	if err != nil {
		return nil, &NotInstalledError{Tried: localSockets(opts)}
	}
	h := &host{file: hostFile(binary, opts)}
	known := h.load()
	if !known {
		h.Version = versionOf(binary)
	}
	p, err := startService(ctx, binary, h, opts)
	if err != nil {
		return nil, err
	}
	if err := opts.reached(p); err != nil {
		_ = p.Close()
		return nil, err
	}
	if opts.LookOnly {
		return p, nil
	}
	if !known {
		p, err = p.adjustOwn(ctx, binary, h, opts)
	}
	if err != nil {
		return nil, err
	}
	p.learnFacts()
	return p, nil
}
