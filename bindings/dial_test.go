package bindings

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
)

// reach dials with an environment of its own.
func reach(t *testing.T, env map[string]string, opts Options) error {
	t.Helper()
	opts.Getenv = func(name string) string { return env[name] }
	opts.UID, opts.RunDir = os.Getuid(), shortDir(t)
	p, err := Dial(t.Context(), opts)
	if err == nil {
		p.Close()
	}
	return err
}

// serve is a service at a socket that answers every request that way.
func serve(t *testing.T, answer http.HandlerFunc) (url string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(shortDir(t), "s"))
	require.NoError(t, err)
	server := &http.Server{Handler: answer}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return "unix://" + l.Addr().String()
}

func TestNobodyThere(t *testing.T) {
	dir := shortDir(t)
	stale := filepath.Join(dir, "stale")
	l, err := net.Listen("unix", stale)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	for url, cause := range map[string]error{
		"unix://" + filepath.Join(dir, "none"): syscall.ENOENT,
		"unix://" + stale:                      syscall.ECONNREFUSED,
		"tcp://127.0.0.1:1":                    syscall.ECONNREFUSED,
	} {
		var down *engine.UnreachableError
		require.ErrorAs(t, reach(t, nil, Options{URL: url}), &down)
		require.ErrorIs(t, down, cause)
		require.Equal(t, url, down.URL)
		require.Equal(t, "--url", down.Asked)

		require.ErrorAs(t, reach(t, map[string]string{"CONTAINER_HOST": url}, Options{}), &down)
		require.Equal(t, "CONTAINER_HOST", down.Asked, "what was asked for by name is not passed over")
	}
}

func TestNoAddress(t *testing.T) {
	for _, value := range []string{"not-a-url", "/run/podman.sock", "http://host", "unix://", "ssh://", "tcp://", "unix:///%zz", "tcp://host:port:port"} {
		var address *AddressError
		require.ErrorAs(t, reach(t, nil, Options{URL: value}), &address, value)
		require.Equal(t, "--url", address.Asked)
		require.ErrorAs(t, reach(t, map[string]string{"CONTAINER_HOST": value}, Options{}), &address, value)
		require.Equal(t, "CONTAINER_HOST", address.Asked)
		require.Contains(t, address.Error(), value)
	}
}

func TestSomebodyElseThere(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no Podman": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") },
		"not found": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
		"too old":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Libpod-API-Version", "3.4.7") },
		"nonsense":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Libpod-API-Version", "new") },
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, answer)
			err := reach(t, nil, Options{URL: url})
			var foreign *ForeignError
			require.ErrorAs(t, err, &foreign)
			require.Contains(t, err.Error(), "what answers at "+url+" is no podman 4.0 or later")
		})
	}
}

// TestSilence: a service that accepts and never answers is given up, at its
// time or at the caller's.
func TestSilence(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	url := serve(t, func(http.ResponseWriter, *http.Request) { <-hang })
	began := time.Now()
	err := reach(t, nil, Options{URL: url, Patience: 200 * time.Millisecond})
	var silent *SilentError
	require.ErrorAs(t, err, &silent)
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestConnections: named in Podman's own configuration.
func TestConnections(t *testing.T) {
	dir := shortDir(t)
	conf := filepath.Join(dir, "containers.conf")
	require.NoError(t, os.WriteFile(conf, []byte(`[engine]
active_service = "usual"
[engine.service_destinations]
  [engine.service_destinations.usual]
  uri = "unix:///nowhere/usual.sock"
  [engine.service_destinations.other]
  uri = "unix:///nowhere/other.sock"
`), 0o600))
	t.Setenv("CONTAINERS_CONF", conf)
	t.Setenv("PODMAN_CONNECTIONS_CONF", filepath.Join(dir, "podman-connections.json"))
	for _, c := range []struct {
		env  map[string]string
		opts Options
		url  string
	}{
		{nil, Options{}, "unix:///nowhere/usual.sock"},
		{nil, Options{Connection: "other"}, "unix:///nowhere/other.sock"},
		{map[string]string{"CONTAINER_CONNECTION": "other"}, Options{}, "unix:///nowhere/other.sock"},
		{map[string]string{"CONTAINER_CONNECTION": "other", "CONTAINER_HOST": "unix:///nowhere/host.sock"}, Options{}, "unix:///nowhere/host.sock"},
		{map[string]string{"CONTAINER_HOST": "unix:///nowhere/host.sock"}, Options{Connection: "usual"}, "unix:///nowhere/usual.sock"},
		{map[string]string{"CONTAINER_HOST": "unix:///nowhere/host.sock"}, Options{URL: "unix:///nowhere/url.sock"}, "unix:///nowhere/url.sock"},
	} {
		var down *engine.UnreachableError
		require.ErrorAs(t, reach(t, c.env, c.opts), &down)
		require.Equal(t, c.url, down.URL)
	}
	var address *AddressError
	require.ErrorAs(t, reach(t, nil, Options{Connection: "othr"}), &address)
	require.Equal(t, "--connection", address.Asked)
	require.ErrorAs(t, reach(t, map[string]string{"CONTAINER_CONNECTION": "othr"}, Options{}), &address)
	require.Equal(t, "CONTAINER_CONNECTION", address.Asked)
}

// TestNotInstalled: nothing answers and there is no podman to start.
func TestNotInstalled(t *testing.T) {
	if os.Getuid() == 0 {
		if _, err := os.Stat("/run/podman/podman.sock"); err == nil {
			t.Skip("a service answers on this machine")
		}
	}
	t.Setenv("PATH", shortDir(t))
	t.Setenv("CONTAINERS_CONF", filepath.Join(shortDir(t), "none.conf"))
	err := reach(t, map[string]string{"XDG_RUNTIME_DIR": shortDir(t)}, Options{})
	var absent *NotInstalledError
	require.ErrorAs(t, err, &absent)
	require.NotEmpty(t, absent.Tried)
}
