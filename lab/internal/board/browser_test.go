package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/browsertest"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// enter is a learner with a phone who joins.
func enter(t *testing.T, b *browsertest.Browser, s *served, name string) *browsertest.Page {
	t.Helper()
	p := b.Page(t)
	p.Size(360, 740)
	p.Open(s.url + "/?code=" + s.Code())
	p.Look(t)
	p.Click("#name")
	p.Type(name)
	p.Submit("button")
	require.Contains(t, p.Text("main"), name)
	return p
}

// choose answers every question the same way, by keyboard: the way everybody
// can go.
func choose(t *testing.T, p *browsertest.Page, o scenarios.Outcome) {
	t.Helper()
	var n int
	p.Eval(`document.querySelectorAll("fieldset").length`, &n)
	require.Equal(t, 9, n)
	p.Eval(`document.querySelector("input[type=radio]").focus()`, nil)
	for range n {
		p.Press("Space") // the first choice
		if o == scenarios.Lost {
			p.Press("Right") // the second
		}
		p.Press("Tab")
		p.Press("Tab")
	}
	var chosen int
	p.Eval(fmt.Sprintf(`document.querySelectorAll("input[type=radio][value=%s]:checked").length`, o), &chosen)
	require.Equal(t, n, chosen)
}

// got is what a page's own session gets of an address, without following.
func got(t *testing.T, p *browsertest.Page, method, path, body string) (status int, text string) {
	t.Helper()
	var r struct {
		Status int
		Text   string
	}
	b, err := json.Marshal(body)
	require.NoError(t, err)
	opts := fmt.Sprintf(`{method: %q, redirect: "manual"}`, method)
	if method == "POST" {
		kind := "application/x-www-form-urlencoded"
		if strings.HasPrefix(path, "/api/") {
			kind = "application/json"
		}
		opts = fmt.Sprintf(`{method: "POST", redirect: "manual", headers: {"Content-Type": %q}, body: %s}`, kind, b)
	}
	p.Eval(fmt.Sprintf(`fetch(%q, %s).then(async r => ({status: r.status, text: await r.text()}))`, path, opts), &r)
	return r.Status, r.Text
}

func TestAClassInTheBrowser(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t, storeFile(t))

	teacher := b.Page(t)
	teacher.Size(1280, 720)
	teacher.Open(s.url + "/teacher#" + s.secret)
	teacher.Wait(`document.querySelector(".code")`)
	require.Contains(t, teacher.Text("header"), s.Code())
	var address string
	teacher.Eval("location.href", &address)
	require.NotContains(t, address, s.secret, "the secret does not stay in the address")
	teacher.Look(t)

	ada := enter(t, b, s, "Ada <script>alert(1)</script>")
	bob := enter(t, b, s, "Bob")
	ada.Look(t)
	ada.Picture("board-phone-predict")
	require.Contains(t, ada.Text("form"), "/var/lib/app/note.txt", "what the questions are about")
	require.Contains(t, ada.Text("form"), "Outside, mounted at /var/lib/app: named volume mydata.")
	teacher.Wait(`document.querySelector("main [data-live=joined]").textContent === "2"`)

	choose(t, ada, scenarios.Survived)
	ada.Submit("form button")
	require.Contains(t, ada.Text("h2"), "sealed")
	ada.Look(t)
	ada.Picture("board-phone-sealed")
	teacher.Wait(`document.querySelector("[data-live=answered]").textContent === "1"`)
	teacher.Picture("board-projector-waiting")

	t.Run("the bars are nowhere before the reveal", func(t *testing.T) {
		for name, p := range map[string]*browsertest.Page{"teacher": teacher, "learner": bob} {
			path := "/"
			if name == "teacher" {
				path = "/teacher"
			}
			for _, path := range []string{path, "/api/board"} {
				status, source := got(t, p, "GET", path, "")
				require.Equal(t, http.StatusOK, status)
				require.NotContains(t, source, `"bars"`, path)
				require.NotContains(t, source, `class="bars"`, path)
				require.NotContains(t, source, `"happened"`, path)
			}
		}
		for _, path := range []string{"/api/bars", "/api/board?reveal=1", "/api/export", "/teacher/attempts.zip", "/class.sqlite", "/../class.sqlite"} {
			status, text := got(t, bob, "GET", path, "")
			require.True(t, status != http.StatusOK || !strings.Contains(text, "survived\":1") && !strings.Contains(text, `"n":1`), "%s: %s", path, text)
		}
		// What Ada answered changes nothing that Bob can get: compared with
		// the same class answering otherwise in another test.
	})

	t.Run("the class code is no key to what the teacher does", func(t *testing.T) {
		for _, secret := range []string{s.Code(), strings.ReplaceAll(s.Code(), "-", ""), ""} {
			status, _ := got(t, bob, "POST", "/teacher/login", "secret="+secret)
			require.Equal(t, http.StatusForbidden, status)
		}
		for _, action := range []string{"reveal", "again", "tell", "ask", "close"} {
			status, _ := got(t, bob, "POST", "/teacher/do", "action="+action+"&topic=three-mounts")
			require.Equal(t, http.StatusForbidden, status, action)
		}
		status, _ := got(t, bob, "POST", "/teacher/results", "")
		require.Equal(t, http.StatusForbidden, status)
		_, text := got(t, bob, "GET", "/teacher", "")
		require.NotContains(t, text, "three-mounts --format json", "the teacher's page")
		require.Equal(t, Predicting, s.View().Topics[0].Phase)
	})

	t.Run("nobody answers twice", func(t *testing.T) {
		var form string
		bob.Eval(`new URLSearchParams([...new FormData(document.querySelector("form"))].concat([...Array(9).keys()].map(i => ["q" + i, "lost"]))).toString()`, &form)
		status, text := got(t, ada, "POST", "/answer", form)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, text, "the first answer counts")
		require.Equal(t, 1, s.View().Topics[0].Answered)
	})

	choose(t, bob, scenarios.Lost)
	bob.Click("[name=q0-sure]")
	bob.Submit("form button")
	teacher.Wait(`document.querySelector("[data-live=answered]").textContent === "2"`)

	teacher.Submit("[value=reveal]")
	readBars := func(p *browsertest.Page, round int) (bars [][]string) {
		t.Helper()
		p.Eval(fmt.Sprintf(`[...document.querySelectorAll(".result")].map(r => [...r.querySelectorAll(".bars")[%d].querySelectorAll("li")].map(li => li.querySelector(".word").textContent.trim() + " " + li.querySelector(".n").textContent.trim()))`, round-1), &bars)
		return bars
	}
	bars := readBars(teacher, 1)
	require.Len(t, bars, 9)
	require.Equal(t, []string{"survives 1", "is lost 1 1 sure"}, bars[0])
	require.Equal(t, []string{"survives 1", "is lost 1"}, bars[8])
	teacher.Look(t)
	teacher.Picture("board-projector-bars")
	ada.Wait(`document.querySelector(".bars")`)
	require.Contains(t, ada.Text(".result li"), "(you)")
	ada.Look(t)
	ada.Picture("board-phone-bars")

	// Round two.
	late := enter(t, b, s, "Late")
	require.Contains(t, late.Text("main"), "You did not answer round 1")
	teacher.Submit("[value=again]")
	ada.Wait(`document.querySelector("h2").textContent.includes("Round 2")`)
	choose(t, ada, scenarios.Lost)
	ada.Submit("form button")
	teacher.Wait(`document.querySelector("[data-live=answered]").textContent === "1"`)
	teacher.Submit("[value=reveal]")
	require.Equal(t, "is lost 1", readBars(teacher, 2)[0][1])
	require.Equal(t, "is lost 1 1 sure", readBars(teacher, 1)[0][1])

	t.Run("a late answer is said to be late", func(t *testing.T) {
		status, text := got(t, bob, "POST", "/answer", "topic=three-mounts&round=2&q0=lost&hash="+threeMounts(t).Hash)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, text, "came too late")
	})

	// What really happened, from the teacher's run.
	var off bool
	teacher.Eval(`document.querySelector("[value=tell]").disabled`, &off)
	require.True(t, off, "nothing is known yet")
	file := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, os.WriteFile(file, run(t), 0o644))
	teacher.Eval(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil)
	upload(t, teacher, "#report", file)
	teacher.Submit("form[action='/teacher/results'] button")
	require.Empty(t, s.View().Topics[0].Happened, "known is not shown")
	teacher.Submit("[value=tell]")
	require.Contains(t, teacher.Text(".happened"), "lost (no such file)")
	require.Contains(t, teacher.Text(".result li.true"), "is lost")
	teacher.Look(t)
	teacher.Media("", "prefers-color-scheme", "dark")
	teacher.Look(t)
	teacher.Picture("board-projector-told-dark")
	teacher.Media("")
	teacher.Picture("board-projector-told")
	teacher.PDF("board-print")
	ada.Wait(`document.querySelector(".happened")`)
	ada.Picture("board-phone-told")

	require.Len(t, s.Export(), 2)
	for name, p := range map[string]*browsertest.Page{"teacher": teacher, "ada": ada, "bob": bob} {
		for _, problem := range p.Problems() {
			// the refusals above are logged as failed requests
			require.Contains(t, problem, "the server responded with a status of 4", name)
		}
		for _, asked := range p.Requests() {
			require.True(t, strings.HasPrefix(asked, s.url+"/") || strings.HasPrefix(asked, "data:"), asked)
		}
	}
}

// TestTheBoardWithoutScripts: forms and a reload do all that a script does.
func TestTheBoardWithoutScripts(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t, storeFile(t))
	teacher := b.Page(t)
	teacher.WithoutScript()
	teacher.Open(s.url + "/teacher")
	teacher.Click("#secret")
	teacher.Type(s.secret)
	teacher.Submit("button")
	require.Contains(t, teacher.Text("header"), s.Code())

	p := b.Page(t)
	p.WithoutScript()
	p.Open(s.url)
	p.Click("#code")
	p.Type(strings.ToLower(s.Code()))
	p.Submit("button")
	choose(t, p, scenarios.Lost)
	p.Submit("form button")
	require.Contains(t, p.Text("h2"), "sealed")
	teacher.Submit("[value=reveal]")
	p.Open(s.url)
	require.Contains(t, p.Text(".result li.lost"), "(you)")
}

// TestAPageGoesOnWhenTheBoardIsBack: the board is killed and comes back at the
// same address; the page says so, and goes on.
func TestAPageGoesOnWhenTheBoardIsBack(t *testing.T) {
	b := browsertest.Start(t)
	file := storeFile(t)
	s := serve(t, file)
	p := enter(t, b, s, "Ada")
	p.Wait(`document.querySelector(".away").hidden`)
	s.stop()
	p.Wait(`!document.querySelector(".away").hidden`)
	again := serveAt(t, file, strings.TrimPrefix(s.url, "http://"))
	p.Wait(`document.querySelector(".away").hidden`)
	again.act(t, Reveal)
	p.Wait(`document.querySelector(".bars")`)
}

func upload(t *testing.T, p *browsertest.Page, selector, file string) {
	t.Helper()
	var doc struct {
		Root struct{ NodeID int }
	}
	require.NoError(t, json.Unmarshal(p.Do("DOM.getDocument", nil), &doc))
	var node struct{ NodeID int }
	require.NoError(t, json.Unmarshal(p.Do("DOM.querySelector", map[string]any{"nodeId": doc.Root.NodeID, "selector": selector}), &node))
	p.Do("DOM.setFileInputFiles", map[string]any{"nodeId": node.NodeID, "files": []string{file}})
}

// run is a report as `lab run three-mounts --format json` writes it, of a run
// in which everything in a mount survived.
func run(t *testing.T) []byte {
	t.Helper()
	topic := threeMounts(t)
	rep := &experiment.Report{
		Version: experiment.ReportVersion, Tool: "lab test", Started: time.Now(),
		Engine:    engine.Facts{Name: "podman", Version: "5.4.2"},
		Scenarios: []experiment.ScenarioSummary{{Name: topic.Name, Title: topic.Title, Hash: topic.Hash}},
	}
	for _, q := range topic.Questions {
		v := experiment.Verdict{
			Scenario: topic.Name, Variant: q.Variant, Item: q.Item, Checkpoint: q.Checkpoint, Written: true,
			Outcome: scenarios.Survived, Expected: scenarios.Survived, Judgement: experiment.AsExpected,
		}
		if q.Item == "seen" || q.Variant == "no mount" {
			v.Outcome, v.Expected, v.Detail = scenarios.Lost, scenarios.Lost, "no such file"
		}
		rep.Results = append(rep.Results, v)
	}
	var b bytes.Buffer
	require.NoError(t, report.JSON(&b, rep, report.Options{}))
	return b.Bytes()
}
