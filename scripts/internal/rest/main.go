// Rest is the floor of scripts/bench: the containers of three-mounts over bare
// HTTP, with nothing beside what the work needs. It makes no ledger, keeps no
// proof, looks at nothing from the host and judges nothing; it only checks
// that the probe answers, so that it can't be fast by not working.
//
//	bin/rest -url unix:///…/podman.sock -image REF -jobs 3
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"persistencelab/probeimage/wire"
)

func main() {
	url := flag.String("url", "", "podman service, unix://…")
	image := flag.String("image", "", "the probe image")
	jobs := flag.Int("jobs", 3, "variants at a time")
	flag.Parse()
	if err := run(strings.TrimPrefix(*url, "unix://"), *image, *jobs); err != nil {
		fmt.Fprintf(os.Stderr, "rest: error: %v\n", err)
		os.Exit(1)
	}
}

func run(socket, image string, jobs int) error {
	c := &client{socket: socket, image: image, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	tmp, err := os.MkdirTemp("", "lab-rest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	prefix := fmt.Sprintf("lab-rest-%d", os.Getpid())
	variants := []func() error{
		func() error { return c.variant(prefix+"-none", "", "") },
		func() error { return c.variant(prefix+"-volume", prefix+"-data", "") },
		func() error { return c.variant(prefix+"-bind", "", filepath.Join(tmp, "data")) },
	}
	errs := make(chan error, len(variants))
	slots := make(chan struct{}, jobs)
	var wg sync.WaitGroup
	for _, v := range variants {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			errs <- v()
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type client struct {
	socket, image string
	http          *http.Client
}

// variant is one variant of three-mounts: run, write, restart, read, rm, run,
// read, rm.
func (c *client) variant(name, volume, folder string) error {
	lasts := volume != "" || folder != ""
	if folder != "" {
		if err := os.Mkdir(folder, 0o777); err != nil {
			return err
		}
	}
	id, err := c.create(name, volume, folder)
	if err != nil {
		return err
	}
	if err := c.post("/containers/" + id + "/start"); err != nil {
		return err
	}
	s, err := c.attach(id)
	if err != nil {
		return err
	}
	if err := s.items(wire.Write, true, true); err != nil {
		return err
	}
	if err := c.post("/containers/" + id + "/restart?t=10"); err != nil {
		return err
	}
	s.conn.Close()
	if s, err = c.attach(id); err != nil {
		return err
	}
	if err := s.items(wire.Read, true, false); err != nil {
		return err
	}
	if err := c.remove(id, s); err != nil {
		return err
	}
	if id, err = c.create(name, volume, folder); err != nil {
		return err
	}
	if err := c.post("/containers/" + id + "/start"); err != nil {
		return err
	}
	if s, err = c.attach(id); err != nil {
		return err
	}
	if err := s.items(wire.Read, lasts, false); err != nil {
		return err
	}
	if err := c.remove(id, s); err != nil || volume == "" {
		return err
	}
	return c.call(http.MethodDelete, "/volumes/"+volume, nil, nil)
}

func (c *client) create(name, volume, folder string) (string, error) {
	const target = "/var/lib/app"
	spec := map[string]any{
		"name": name, "image": c.image, "stdin": true, "netns": map[string]string{"nsmode": "none"},
		// As the lab sends them where Podman's own defaults are refused; on
		// other hosts they change nothing.
		"r_limits": []map[string]any{{"type": "nofile", "soft": 1024, "hard": 1024}, {"type": "nproc", "soft": 4096, "hard": 4096}},
	}
	if volume != "" {
		spec["volumes"] = []map[string]string{{"Name": volume, "Dest": target}}
	}
	if folder != "" {
		spec["mounts"] = []map[string]any{{"type": "bind", "source": folder, "destination": target, "options": []string{"rbind"}}}
	}
	var made struct{ ID string }
	err := c.call(http.MethodPost, "/containers/create", spec, &made)
	return made.ID, err
}

func (c *client) post(path string) error { return c.call(http.MethodPost, path, nil, nil) }

func (c *client) call(method, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "http://d/v4.0.0/libpod"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(answer))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// remove asks the probe to leave and removes the container by force.
func (c *client) remove(id string, s *session) error {
	if _, err := s.client.Call(context.Background(), wire.Request{Op: wire.Exit}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, s.conn)
	s.conn.Close()
	return c.call(http.MethodDelete, "/containers/"+id+"?force=true&timeout=0", nil, nil)
}

// session is an attach stream to the probe.
type session struct {
	conn   net.Conn
	client *wire.Client
}

func (c *client) attach(id string) (*session, error) {
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(conn, "POST /v4.0.0/libpod/containers/%s/attach?stdin=true&stdout=true&stream=true HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n", id)
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols && res.StatusCode != http.StatusOK {
		conn.Close()
		return nil, fmt.Errorf("attach: %s", res.Status)
	}
	return &session{conn: conn, client: wire.NewClient(&frames{r: r, Writer: conn})}, nil
}

// frames takes Podman's stream frames off.
type frames struct {
	r    *bufio.Reader
	left int
	io.Writer
}

func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(f.r, header[:]); err != nil {
			return 0, err
		}
		f.left = int(binary.BigEndian.Uint32(header[4:]))
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// items writes or reads the three items and checks what the probe says:
// whether the files are there, and whether the memory is.
func (s *session) items(op wire.Op, files, memory bool) error {
	for _, it := range []struct {
		item wire.Item
		want bool
	}{
		{wire.Item{Kind: "file", Path: "/var/lib/app/note.txt", Nonce: "0123456789abcdef"}, files},
		{wire.Item{Kind: "sqlite", Path: "/var/lib/app/app.db", Rows: 3, Nonce: "0123456789abcdef"}, files},
		{wire.Item{Kind: "memory", Path: "visits", Nonce: "0123456789abcdef"}, memory},
	} {
		reply, err := s.client.Call(context.Background(), wire.Request{Op: op, Item: &it.item})
		if err != nil {
			return err
		}
		if reply.Error != nil {
			return reply.Error
		}
		if reply.Found == nil || reply.Found.Present != it.want {
			return fmt.Errorf("%s %s: present is not %t", op, it.item.Path, it.want)
		}
	}
	return nil
}
