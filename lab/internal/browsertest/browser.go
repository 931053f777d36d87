// Package browsertest drives a real headless Chromium for tests: it opens
// pages, presses keys, clicks where things are, emulates media and measures
// what a page looks like.
//
// It speaks Chromium's DevTools protocol over the pipe that
// --remote-debugging-pipe offers: no port, no WebSocket, no dependency. Tests
// say the few commands they need by name.
//
// A test skips, and says so, where there is no Chromium; where
// LAB_TEST_REQUIRE_BROWSER is set, that is a failure. It also skips in the
// runs of the tests that are about an engine (LAB_TEST_ENGINES): what a
// browser shows does not depend on it.
package browsertest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long anything may take: the machine may be busy.
const patience = 60 * time.Second

// Browser is one running Chromium.
type Browser struct {
	t    testing.TB
	cmd  *exec.Cmd
	send io.WriteCloser

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	pages   map[string]*Page // by session
	gone    error
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`

	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// Start starts a Chromium that ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	if os.Getenv("LAB_TEST_ENGINES") != "" {
		t.Skip("browser tests run once, not for each engine")
	}
	if testing.Short() {
		t.Skip("a browser takes its time: not with -short")
	}
	path := find()
	if path == "" {
		if os.Getenv("LAB_TEST_REQUIRE_BROWSER") != "" {
			t.Fatal("no Chromium, and LAB_TEST_REQUIRE_BROWSER is set")
		}
		t.Skip("no Chromium here (scripts/setup --test installs one)")
	}
	// Not t.TempDir: Chromium's children may write a moment longer than it
	// lives, and a test should not fail for that.
	profile, err := os.MkdirTemp("", "persistencelab-browser")
	require.NoError(t, err)
	in, send, err := os.Pipe()
	require.NoError(t, err)
	receive, out, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-proxy-server",
		"--force-color-profile=srgb", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile)
	cmd.ExtraFiles = []*os.File{in, out} // 3 and 4, as the pipe's ends are defined
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	in.Close()
	out.Close()
	b := &Browser{t: t, cmd: cmd, send: send, waiting: map[int]chan reply{}, pages: map[string]*Page{}}
	go b.listen(receive)
	t.Cleanup(func() {
		_, _ = b.command("", "Browser.close", nil)
		send.Close()
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its group: what it started
		<-ended
		receive.Close()
		for range 20 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return b
}

func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func (b *Browser) listen(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.gone = fmt.Errorf("the browser went away: %w", err)
			for id, c := range b.waiting {
				close(c)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m reply
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; m.ID != 0 && c != nil {
			delete(b.waiting, m.ID)
			c <- m
		} else if p := b.pages[m.Session]; p != nil {
			p.note(m)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) command(session, method string, params any) (json.RawMessage, error) {
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		return nil, b.gone
	}
	b.next++
	id, answer := b.next, make(chan reply, 1)
	b.waiting[id] = answer
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if session != "" {
		m["sessionId"] = session
	}
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.send.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: Chromium went away", method)
		case r.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer in %s", method, patience)
	}
}

// Page is one tab, with cookies and storage of its own.
type Page struct {
	b       *Browser
	t       testing.TB
	session string

	// Under b.mu.
	requests []string
	problems []string
}

// Page opens an empty tab.
func (b *Browser) Page(t testing.TB) *Page {
	t.Helper()
	p := &Page{b: b, t: t}
	get := func(method string, params any, into any) {
		t.Helper()
		r, err := b.command("", method, params)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(r, into))
	}
	var context struct{ BrowserContextID string }
	get("Target.createBrowserContext", map[string]any{"disposeOnDetach": true}, &context)
	var target struct{ TargetID string }
	get("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID}, &target)
	var attached struct{ SessionID string }
	get("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		p.Do(domain+".enable", nil)
	}
	return p
}

// note keeps what a page does by itself. Called with b.mu held.
func (p *Page) note(m reply) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &e)
		p.requests = append(p.requests, e.Request.URL)
	case "Runtime.exceptionThrown", "Log.entryAdded":
		p.problems = append(p.problems, m.Method+" "+string(m.Params))
	}
}

// Do gives a command of the DevTools protocol.
func (p *Page) Do(method string, params any) json.RawMessage {
	p.t.Helper()
	r, err := p.b.command(p.session, method, params)
	require.NoError(p.t, err, method)
	return r
}

// Requests are the addresses the page has asked for, its own included.
func (p *Page) Requests() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Problems are the errors of scripts and of the page's security policy.
func (p *Page) Problems() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Open goes to an address and waits until it is loaded.
func (p *Page) Open(url string) {
	p.t.Helper()
	p.turn(func() {
		var r struct{ ErrorText string }
		require.NoError(p.t, json.Unmarshal(p.Do("Page.navigate", map[string]any{"url": url}), &r))
		require.Empty(p.t, r.ErrorText, url)
	})
}

// turn waits until what leave does has brought another page.
func (p *Page) turn(leave func()) {
	p.t.Helper()
	p.Eval("window.before = true", nil)
	leave()
	p.Wait(`!window.before && document.readyState === "complete"`)
}

// Eval evaluates JavaScript and decodes its value; promises are waited for.
func (p *Page) Eval(js string, into any) {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	require.NoError(p.t, json.Unmarshal(p.Do("Runtime.evaluate", map[string]any{
		"expression": js, "returnByValue": true, "awaitPromise": true,
	}), &r))
	if e := r.ExceptionDetails; e != nil {
		require.FailNow(p.t, e.Text+" "+e.Exception.Description, js)
	}
	if into != nil {
		require.NoError(p.t, json.Unmarshal(r.Result.Value, into), js)
	}
}

// Text is what stands in the first element of the selector.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.Eval(`(document.querySelector(`+quote(selector)+`) ?? {innerText: ""}).innerText`, &text)
	return text
}

// Wait waits until a JavaScript expression is true.
func (p *Page) Wait(js string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		// A page that is being replaced has no context for a moment.
		r, err := p.b.command(p.session, "Runtime.evaluate", map[string]any{"expression": "Boolean(" + js + ")", "returnByValue": true})
		if err == nil && bytes.Contains(r, []byte(`"value":true`)) {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(p.t, "it never was so: "+js, p.Text("body"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Click clicks in the middle of the first element of the selector, with a
// mouse: what lies over it gets the click.
func (p *Page) Click(selector string) {
	p.t.Helper()
	var at *struct{ X, Y float64 }
	p.Eval(`(() => { const e = document.querySelector(`+quote(selector)+`); if (!e) return null;
		e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getBoundingClientRect();
		return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()`, &at)
	require.NotNil(p.t, at, "nothing to click: "+selector)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.Do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// Submit clicks and waits for the page that comes.
func (p *Page) Submit(selector string) {
	p.t.Helper()
	p.turn(func() { p.Click(selector) })
}

// Type types text into what has the focus.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.Do("Input.insertText", map[string]any{"text": text})
}

// keys that tests press.
var keys = map[string]map[string]any{
	"Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, "Enter": {"key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13},
	"Space": {"key": " ", "code": "Space", "text": " ", "windowsVirtualKeyCode": 32},
	"Right": {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}, "Left": {"key": "ArrowLeft", "code": "ArrowLeft", "windowsVirtualKeyCode": 37},
	"Home": {"key": "Home", "code": "Home", "windowsVirtualKeyCode": 36}, "End": {"key": "End", "code": "End", "windowsVirtualKeyCode": 35},
}

// Press presses a key: Tab, Enter, Space, Right, Left, Home or End.
func (p *Page) Press(key string) {
	p.t.Helper()
	k, ok := keys[key]
	require.True(p.t, ok, key)
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind}
		for name, v := range k {
			params[name] = v
		}
		p.Do("Input.dispatchKeyEvent", params)
	}
}

// Size makes the page as wide and high as a screen, in CSS pixels.
func (p *Page) Size(width, height int) {
	p.t.Helper()
	p.Do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
}

// Media emulates a medium ("print", "" for the screen) and features, such as
// "prefers-reduced-motion", "reduce".
func (p *Page) Media(medium string, features ...string) {
	p.t.Helper()
	fs := []map[string]string{}
	for i := 0; i+1 < len(features); i += 2 {
		fs = append(fs, map[string]string{"name": features[i], "value": features[i+1]})
	}
	p.Do("Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": fs})
}

// WithoutScript turns the page's own scripts off; Eval goes on working.
func (p *Page) WithoutScript() {
	p.t.Helper()
	p.Do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
}

// Picture writes the whole page as a PNG into the folder that
// LAB_TEST_PICTURES names, to be looked at by people; without it, nothing.
func (p *Page) Picture(name string) {
	p.t.Helper()
	dir := os.Getenv("LAB_TEST_PICTURES")
	if dir == "" {
		return
	}
	p.save(filepath.Join(dir, name+".png"), p.Do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}))
}

// PDF prints the page on A4 and gives the document.
func (p *Page) PDF(name string) []byte {
	p.t.Helper()
	r := p.Do("Page.printToPDF", map[string]any{"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false})
	if dir := os.Getenv("LAB_TEST_PICTURES"); dir != "" {
		p.save(filepath.Join(dir, name+".pdf"), r)
	}
	return p.data(r)
}

func (p *Page) save(file string, r json.RawMessage) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(file, p.data(r), 0o644))
}

func (p *Page) data(r json.RawMessage) []byte {
	p.t.Helper()
	var d struct{ Data string }
	require.NoError(p.t, json.Unmarshal(r, &d))
	b, err := base64.StdEncoding.DecodeString(d.Data)
	require.NoError(p.t, err)
	return b
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return strings.ReplaceAll(string(b), "\u2028", `\u2028`)
}
