package picture_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/browsertest"
	"persistencelab/lab/internal/report"
)

// page is a report as a file that a browser opens.
func page(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.HTML(&b, read(t, name), report.Options{}))
	file := filepath.Join(t.TempDir(), name+".html")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	return "file://" + file
}

// shown counts the stills of the first picture that can be seen.
const shown = `[...document.querySelectorAll(".picture")][0].querySelectorAll(".stills > li").length && [...[...document.querySelectorAll(".picture")][0].querySelectorAll(".stills > li")].filter(e => e.checkVisibility()).length`

func count(t *testing.T, p *browsertest.Page, js string) (n int) {
	t.Helper()
	p.Eval(js, &n)
	return n
}

func TestThePictureInTheBrowser(t *testing.T) {
	b := browsertest.Start(t)
	url := page(t, "three-mounts")

	t.Run("a player, by keyboard", func(t *testing.T) {
		p := b.Page(t)
		p.Size(1280, 900)
		p.Open(url)
		require.Equal(t, 1, count(t, p, shown))
		require.Equal(t, 3, count(t, p, `document.querySelectorAll(".picture.playing .player").length`))
		now := func() string {
			t.Helper()
			var s string
			p.Eval(`document.querySelector(".picture li.now svg > title").textContent`, &s)
			return s
		}
		require.Equal(t, "Step 1: podman run", now(), "nothing moves by itself")
		p.Look(t)
		p.Picture("picture-wide-first")

		p.Eval(`[...document.querySelectorAll(".player button")].find(b => b.textContent.startsWith("Step")).focus()`, nil)
		p.Press("Enter")
		require.Equal(t, "Step 2: write", now())
		p.Press("Space")
		require.Equal(t, "Step 3: podman restart", now())
		var outline string
		p.Eval(`getComputedStyle(document.activeElement).outlineStyle`, &outline)
		require.Equal(t, "solid", outline, "the focus can be seen")
		p.Press("Tab") // the scrubber
		p.Press("End")
		require.Equal(t, "Step 7: look: after rm and run", now())
		var said string
		p.Eval(`document.activeElement.getAttribute("aria-valuetext")`, &said)
		require.Equal(t, "Step 7: look: after rm and run", said)
		p.Press("Left")
		p.Press("Left")
		require.Equal(t, "Step 5: podman rm", now())
		p.Look(t)
		p.Picture("picture-wide-rm")

		play := `[...document.querySelectorAll(".player button")][1]`
		p.Eval(play+`.focus()`, nil)
		p.Press("Space")
		p.Wait(`document.querySelector(".picture li.now svg > title").textContent.startsWith("Step 7")`)
		p.Wait(play + `.textContent.includes("Play")`)
		p.Press("Space") // from the start
		p.Wait(`document.querySelector(".picture li.now svg > title").textContent.startsWith("Step 1")`)
		p.Press("Space")
		p.Eval(`new Promise(r => setTimeout(r, 3000))`, nil)
		require.Equal(t, "Step 1: podman run", now(), "paused is paused")

		p.Click(`.player [aria-pressed]`)
		require.Equal(t, 7, count(t, p, shown))
		p.Look(t)
		require.Empty(t, p.Problems())
		for _, r := range p.Requests() {
			require.Equal(t, url, r, "one file, and nothing else")
		}
	})

	t.Run("a phone", func(t *testing.T) {
		p := b.Page(t)
		p.Size(360, 740)
		p.Open(url)
		p.Eval(`[...document.querySelectorAll(".player input")].forEach(r => { r.value = 7; r.dispatchEvent(new Event("input")); })`, nil)
		p.Look(t)
		p.Media("", "prefers-color-scheme", "dark")
		p.Look(t)
		p.Picture("picture-phone-dark")
		p.Media("")
		p.Picture("picture-phone")
	})

	t.Run("a projector", func(t *testing.T) {
		p := b.Page(t)
		p.Size(1920, 1080)
		p.Open(url)
		p.Eval(`[...document.querySelectorAll(".player input")].forEach(r => { r.value = 7; r.dispatchEvent(new Event("input")); })`, nil)
		p.Look(t)
		p.Picture("picture-projector")
	})

	t.Run("a strip for who wants less motion", func(t *testing.T) {
		p := b.Page(t)
		p.Size(1280, 900)
		p.Media("", "prefers-reduced-motion", "reduce")
		p.Open(url)
		require.Equal(t, 7, count(t, p, shown))
		require.Zero(t, count(t, p, `[...document.querySelectorAll(".player")].filter(e => e.checkVisibility()).length`))
		require.Zero(t, count(t, p, `document.getAnimations().length`))
		p.Look(t)
	})

	t.Run("a strip without scripts", func(t *testing.T) {
		p := b.Page(t)
		p.Size(1280, 900)
		p.WithoutScript()
		p.Open(url)
		require.Equal(t, 7, count(t, p, shown))
		require.Zero(t, count(t, p, `document.querySelectorAll(".player").length`))
		p.Look(t)
		p.Picture("picture-without-script")
	})

	t.Run("on paper", func(t *testing.T) {
		p := b.Page(t)
		p.Open(url)
		// A4 with Chromium's margins of 1 cm: 718 CSS pixels.
		p.Size(718, 1000)
		p.Media("print")
		require.Equal(t, 7, count(t, p, shown), "also while one step is on the screen")
		require.Zero(t, count(t, p, `[...document.querySelectorAll(".player, button, input")].filter(e => e.checkVisibility()).length`))
		p.Look(t)
		var cut []string
		p.Eval(`[...document.querySelectorAll("svg, figcaption, table, p, dd, pre")].filter(e => e.checkVisibility() && (e.getBoundingClientRect().right > 719 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth)).map(e => e.tagName + " " + e.textContent.slice(0, 40))`, &cut)
		require.Empty(t, cut, "nothing is cut off")
		p.Picture("picture-print")
		p.Media("")
		pdf := p.PDF("picture")
		pages := len(regexp.MustCompile(`/Type\s*/Page\b[^s]`).FindAll(pdf, -1))
		t.Logf("%d pages A4", pages)
		require.Greater(t, pages, 1)
	})
}

// TestOtherPictures looks at runs with several containers, refusals, prunes.
func TestOtherPictures(t *testing.T) {
	b := browsertest.Start(t)
	p := b.Page(t)
	p.Size(360, 740)
	p.Media("", "prefers-reduced-motion", "reduce")
	p.Open(page(t, "various"))
	p.Look(t)
	p.Size(1280, 900)
	p.Look(t)
	p.Picture("picture-various")
	// Text stays in its box: of every pill, the text is no wider.
	var out []string
	p.Eval(`[...document.querySelectorAll("svg")].flatMap(svg => {
		const right = svg.getBoundingClientRect().right;
		return [...svg.querySelectorAll("text")].filter(t => t.getBoundingClientRect().right > right + 1).map(t => t.textContent);
	})`, &out)
	require.Empty(t, out)
	p.Eval(`[...document.querySelectorAll("rect.pill")].flatMap(r => {
		const box = r.getBoundingClientRect();
		const text = [...r.ownerSVGElement.querySelectorAll("text.item")].find(t => {
			const b = t.getBoundingClientRect();
			return Math.abs(b.left - box.left) < 10 && b.top >= box.top - 8 && b.bottom <= box.bottom + 8;
		});
		return !text ? ["no text"] : text.getBoundingClientRect().right > box.right + 1 ? [text.textContent] : [];
	})`, &out)
	require.Empty(t, out)
	require.False(t, strings.Contains(strings.Join(p.Problems(), " "), "Content Security Policy"))
}
