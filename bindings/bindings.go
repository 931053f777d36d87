// Package bindings is the Podman adapter: it implements engine.Engine over
// Podman's REST bindings, and it is the only package that imports Podman.
//
// Dial finds a service the way Podman's own client does, and starts one on a
// private socket when none answers and podman is installed. What a host
// refuses (an OCI runtime that can't do its cgroups, ulimits beyond the hard
// limits) is learned once with a throw-away container, worked round where the
// lab may, and stated in the engine's facts.
//
// Errors are mapped at the call: engine.NotFoundError, ExistsError,
// InUseError, UnreachableError, UnsupportedError; anything else keeps
// Podman's words.
package bindings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blang/semver/v4"
	podman "github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/errorhandling"
	"github.com/sirupsen/logrus"

	"persistencelab/lab/engine"
)

// Podman is a connection to one Podman service. It implements engine.Engine.
type Podman struct {
	conn     context.Context // carries Podman's client; joined with the caller's context per call
	hangUp   context.CancelFunc
	url      string
	remote   bool // the service is on another machine, or in a virtual one
	version  semver.Version
	asked    string   // how the user asked for the service; "" when the lab found or started it
	service  *service // nil when the service was found, not started
	host     *host    // what was learned of where the service runs
	limits   []ulimit // sent with every container; empty when the defaults work
	adjusted []string // what was changed so that containers start, for the facts

	// images is held while an image is made or removed: Podman's store loses
	// layers, and its service its footing, when one image goes while another
	// that shares layers with it comes (seen on 4.3.1: "layer not known").
	images sync.RWMutex

	podOnce sync.Mutex  // held while the first pod is made
	podMade atomic.Bool // a pod was made, and with it what Podman makes for pods

	opts Options // it was dialed with

	criuOnce sync.Once
	criuWhy  error // why no container can be checkpointed here; nil where one can

	cliOnce  sync.Once
	cliFound *cli   // the podman command beside the service; nil where there is none
	cliWhy   string // why there is none

	factsOnce sync.Once
	factsDone chan struct{}
	facts     engine.Facts
}

var _ engine.Engine = (*Podman)(nil)

// answerTime bounds the first question to a service. One that is started by
// its socket, rootless, on a slow disk, takes seconds.
const answerTime = 20 * time.Second

// connect opens a connection to the service at t. It does not retry. patience,
// when not 0, takes the place of answerTime.
func connect(ctx context.Context, t target, patience time.Duration) (*Podman, error) {
	if patience == 0 {
		patience = answerTime
	}
	type answer struct {
		conn context.Context
		err  error
	}
	answers := make(chan answer, 1)
	// The bindings keep their client in the context they return, so that this
	// one is cancelled only when nothing came of it. What it takes to get
	// through ssh does not heed it at all.
	lasting, abandon := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		conn, err := podman.NewConnectionWithOptions(lasting, podman.Options{
			URI: t.url, Identity: t.identity, Machine: t.machine,
		})
		answers <- answer{conn, err}
	}()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	var conn context.Context
	select {
	case a := <-answers:
		if a.err != nil {
			abandon()
			if answered(a.err) {
				return nil, &ForeignError{URL: t.url, Err: lastWords(a.err)}
			}
			return nil, &engine.UnreachableError{URL: t.url, Asked: t.asked, Err: kernelWords(a.err)}
		}
		conn = a.conn
	case <-ctx.Done():
		abandon()
		return nil, context.Cause(ctx)
	case <-deadline.C:
		abandon()
		return nil, &engine.UnreachableError{URL: t.url, Asked: t.asked, Err: &SilentError{After: patience}}
	}
	p := &Podman{conn: conn, hangUp: abandon, url: t.url, factsDone: make(chan struct{})}
	p.remote = t.machine || !strings.HasPrefix(t.url, "unix:")
	if v := podman.ServiceVersion(conn); v != nil {
		p.version = *v
	}
	if p.version.EQ(semver.Version{}) { // the bindings only warn of it
		abandon()
		return nil, &ForeignError{URL: t.url, Err: errors.New("it tells no version of Podman's interface")}
	}
	return p, nil
}

// SilentError: something accepts connections there and never answers.
type SilentError struct{ After time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("something listens there, but gave no answer within %s", e.After)
}

// ForeignError: something answers there, but no Podman that the lab can speak
// with: Podman's client needs a service of 4.0 or later.
type ForeignError struct {
	URL string
	Err error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("what answers at %s is no podman 4.0 or later: %v", e.URL, e.Err)
}
func (e *ForeignError) Unwrap() error { return e.Err }

// answered tells an answer of the wrong kind from no answer.
func answered(err error) bool {
	var urlErr *url.Error
	var opErr *net.OpError
	return !errors.As(err, &urlErr) && !errors.As(err, &opErr) && !errors.Is(err, io.EOF)
}

// lastWords is the innermost error: without the client's wrapping.
func lastWords(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// sendLogs sends what Podman's client logs to w; nil discards it. Its
// warnings are about the client's own plumbing, not about anyone's containers.
func sendLogs(w io.Writer) {
	if w == nil {
		w = io.Discard
	}
	logrus.SetOutput(w)
}

// ctx joins the caller's context with the one that holds Podman's client:
// deadline and cancellation from the caller, values from either.
func (p *Podman) ctx(caller context.Context) context.Context {
	return joined{caller, p.conn}
}

type joined struct {
	context.Context
	values context.Context
}

func (j joined) Value(key any) any {
	if v := j.Context.Value(key); v != nil {
		return v
	}
	return j.values.Value(key)
}

// do makes a REST call over the bindings' connection, for what the typed
// bindings have no light function for. The caller closes the body.
// Names go into values, one for each %s of path.
func (p *Podman) do(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader, values ...string) (*podman.APIResponse, error) {
	conn, err := podman.GetClient(p.conn)
	if err != nil {
		return nil, err
	}
	return conn.DoRequest(p.ctx(ctx), body, method, path, query, header, values...)
}

// call is do, with the answer decoded into into (nil to ignore it).
func (p *Podman) call(ctx context.Context, method, path string, query url.Values, body io.Reader, into any, values ...string) error {
	header := http.Header{}
	if body != nil {
		header.Set("Content-Type", "application/x-tar")
	}
	res, err := p.do(ctx, method, path, query, header, body, values...)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return res.Process(into)
}

// atLeast tells whether the service is of Podman major.minor or later.
func (p *Podman) atLeast(major, minor uint64) bool {
	return p.version.GTE(semver.Version{Major: major, Minor: minor})
}

// fail maps Podman's error to the port's. kind and name say what was asked
// about.
func (p *Podman) fail(ctx context.Context, err error, kind, name string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var model *errorhandling.ErrorModel
	var conflict *errorhandling.PodConflictErrorModel
	switch {
	case errors.As(err, &model):
		text := strings.TrimSpace(model.Message)
		words := errors.New(text)
		switch {
		case model.ResponseCode == http.StatusNotFound,
			// 4.3.1 answers 500 for an image that is not there.
			kind == "image" && strings.Contains(text, "image not known"),
			// And 500 when it goes while it is being asked about.
			strings.HasSuffix(text, ": no such "+kind):
			return &engine.NotFoundError{Kind: kind, Name: name, Err: words}
		case strings.Contains(text, "is being used"), strings.Contains(text, "is in use by a container"):
			return &engine.InUseError{Kind: kind, Name: name, Err: words}
		// Podman answers 500 for a taken name, with the cause in words.
		case strings.Contains(text, "already in use"), strings.Contains(text, "already exists"):
			return &engine.ExistsError{Kind: kind, Name: name, Err: words}
		}
		return words
	case errors.As(err, &conflict):
		return errors.New(conflict.Error())
	case isTransport(err):
		return &engine.UnreachableError{URL: p.url, Err: kernelWords(err)}
	}
	return err
}

// isTransport tells a failure to ask from an answer.
func isTransport(err error) bool {
	var urlErr *url.Error
	var opErr *net.OpError
	var connErr podman.ConnectError
	return errors.As(err, &urlErr) || errors.As(err, &opErr) || errors.As(err, &connErr) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// kernelWords takes the client's wrapping off: what is left is what the
// kernel said.
func kernelWords(err error) error {
	var opErr *net.OpError
	if errors.As(err, &opErr) {
		return opErr.Err
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// unsupported is the error for what this version of Podman can't do yet.
func (p *Podman) unsupported(what, needs string) error {
	return &engine.UnsupportedError{What: what, Needs: needs, Err: fmt.Errorf("this is podman %s", p.version)}
}

// Version is the service's version. Facts has it too, and asks longer.
func (p *Podman) Version() string { return p.version.String() }

// Local implements engine.Engine.
func (p *Podman) Local() bool { return !p.remote }

// Close lets go of the connection, and of the service, if the lab started it.
func (p *Podman) Close() error {
	defer p.hangUp()
	if p.service != nil {
		return p.service.stop()
	}
	return nil
}

// Asked tells how the user asked for this service ("--url"); "" when the lab
// found or started it by itself.
func (p *Podman) Asked() string { return p.asked }

// Service tells where the service is, and whether it is one the lab started.
func (p *Podman) Service() (url string, own bool) { return p.url, p.service != nil }
