package stores_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/stores"
	"persistencelab/probeimage/stores/storestest"
)

// ownStore is one of the lab's own stores as a process of this machine. The
// others people run are tried where their images are: package cli.
type ownStore struct {
	kind, folder, port string
	cmd                *exec.Cmd
}

func program(t *testing.T) string {
	t.Helper()
	dir, promised := os.LookupEnv("LAB_STORES")
	if !promised {
		dir = "../../bin/stores"
	}
	path, err := filepath.Abs(filepath.Join(dir, "store-linux-"+runtime.GOARCH))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		if promised {
			t.Fatalf("the stores were promised: %v", err)
		}
		t.Skip("needs the stores' programs: scripts/stores")
	}
	return path
}

func start(t *testing.T, kind string) *ownStore {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := &ownStore{kind: kind, folder: t.TempDir(), port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	l.Close()
	s.again(t)
	t.Cleanup(s.kill)
	return s
}

func (s *ownStore) again(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(program(t), s.kind)
	s.cmd.Env = []string{"STORE_USER=lab", "STORE_PASSWORD=pw", "STORE_PORT=" + s.port, "STORE_DATA=" + s.folder}
	require.NoError(t, s.cmd.Start())
}

func (s *ownStore) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *ownStore) address() string {
	scheme := map[string]string{"database": "nats", "bucket": "http"}[s.kind]
	return fmt.Sprintf("%s://lab:pw@127.0.0.1:%s", scheme, s.port)
}

// open gives a client once the store takes requests.
func (s *ownStore) open(t *testing.T) stores.Store {
	t.Helper()
	c, err := stores.Open(s.address())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool { return c.Ping(t.Context()) == nil }, 20*time.Second, 5*time.Millisecond)
	return c
}

func TestContract(t *testing.T) {
	for _, kind := range []string{"database", "bucket"} {
		t.Run(kind, func(t *testing.T) {
			s := start(t, kind)
			s.open(t)
			storestest.Contract(t, s.address())
		})
	}
}

// A store that went away is found again by the next call, and what it had
// acknowledged is there. In between, a write fails, and it fails for good: it
// is not kept back and sent later.
func TestStoreComesBack(t *testing.T) {
	for _, kind := range []string{"database", "bucket"} {
		t.Run(kind, func(t *testing.T) {
			s := start(t, kind)
			c := s.open(t)
			ctx := t.Context()
			require.NoError(t, c.Put(ctx, "notes", "before", []byte("kept")))
			s.kill()
			require.Error(t, c.Put(ctx, "notes", "meanwhile", []byte("nobody hears it")))
			_, err := c.List(ctx, "notes")
			require.Error(t, err)
			require.NotErrorIs(t, err, stores.ErrNotFound, "not there is not the same as not reached")

			s.again(t)
			var all map[string][]byte
			require.Eventually(t, func() bool {
				all, err = c.List(ctx, "notes")
				return err == nil
			}, 20*time.Second, 5*time.Millisecond, "%v", err)
			require.Equal(t, map[string][]byte{"before": []byte("kept")}, all)
		})
	}
}

// Words for people never hold the password.
func TestOpenRefuses(t *testing.T) {
	for address, words := range map[string]string{
		"mysql://lab:secret@host":                      "there is no driver for mysql://",
		"nats://lab:secret@host:port":                  "no URL",
		"http://lab:secret@ho st":                      "no URL",
		"redis://lab:secret@host/no-digit":             "no redis:// URL",
		"postgres://lab:secret@host/?pool_max_conns=x": "no postgres:// URL",
		"secret": "there is no driver",
	} {
		_, err := stores.Open(address)
		require.ErrorContains(t, err, words, address)
		require.False(t, strings.Contains(address, ":secret") && strings.Contains(err.Error(), "secret"), err)
	}
}

// Start-up and memory of the lab's own stores, for whoever asks:
// LAB_TEST_FIGURES=1 go test -v -run TestFigures ./probeimage/stores
func TestFigures(t *testing.T) {
	if os.Getenv("LAB_TEST_FIGURES") == "" {
		t.Skip("only measures, where LAB_TEST_FIGURES is set")
	}
	info, err := os.Stat(program(t))
	require.NoError(t, err)
	t.Logf("the program of both: %.1f MB", float64(info.Size())/1e6)
	for _, kind := range []string{"database", "bucket"} {
		var took []time.Duration
		var memory int
		for range 11 {
			began := time.Now()
			s := start(t, kind)
			c := s.open(t)
			took = append(took, time.Since(began))
			for i := range 100 {
				require.NoError(t, c.Put(t.Context(), "figures", fmt.Sprint("id-", i), make([]byte, 1024)))
			}
			memory = max(memory, resident(t, s.cmd.Process.Pid))
			s.kill()
		}
		slices.Sort(took)
		t.Logf("%s: takes requests after %v (median of %d; %v to %v), %d MB of memory after 100 writes at most", kind, took[len(took)/2].Round(time.Millisecond), len(took), took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), memory>>10)
	}
}

// resident is a process's peak memory in KiB.
func resident(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// hastyStore answers every request with one code and hangs up, with the rest of
// the request unread: the kernel then resets the connection.
func hastyStore(t *testing.T, status, code, words string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	body := fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message></Error>", code, words)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			for line := ""; line != "\r\n" && err == nil; {
				line, err = r.ReadString('\n')
			}
			time.Sleep(5 * time.Millisecond) // until the client waits to write more
			fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: application/xml\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body)
			c.Close()
		}
	}()
	return "http://lab:pw@" + l.Addr().String()
}

// A store that refuses an object before it has all of it is heard.
func TestRefusedHalfway(t *testing.T) {
	address := hastyStore(t, "507 Insufficient Storage", "InsufficientStorage", "the disk is full")
	store, err := stores.Open(address)
	require.NoError(t, err)
	defer store.Close()
	value := make([]byte, 16<<20)
	for range 20 {
		err := store.Put(t.Context(), "some", "thing", value)
		require.ErrorIs(t, err, stores.ErrFull)
		require.ErrorContains(t, err, "the disk is full")
	}
}
