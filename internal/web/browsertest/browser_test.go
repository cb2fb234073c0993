// Package browsertest uses the pages with Chromium: by keyboard, on a phone, without scripts, with
// two people at once, and checks their accessibility with axe-core.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// browser is a running Chromium; all tests of the package share one.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path := chromium()
	if path == "" {
		return m.Run() // each test says that Chromium is missing, or skips
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func chromium() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// size is the size of a window.
type size struct{ width, height int64 }

var (
	desk  = size{1440, 900}
	phone = size{360, 780}
)

// tab is a tab of one person's browser, with its own cookies.
type tab struct {
	*testing.T
	ctx    context.Context
	server *webtest.Server
}

// openTab opens a tab and signs a person in.
func openTab(t *testing.T, s *webtest.Server, person string, window size, actions ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	b := newTab(t, s, window)
	b.do(actions...)
	b.do(chromedp.Navigate(s.SignInLink(person, "/inbox")))
	return b
}

// newTab opens a tab of a new browser, which is not signed in.
func newTab(t *testing.T, s *webtest.Server, window size) *tab {
	t.Helper()
	return newTabOf(t, browser, s, window)
}

// newTabOf opens a tab of a Chromium, with its own cookies.
func newTabOf(t *testing.T, running context.Context, s *webtest.Server, window size) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(running, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t, ctx, s}
	// The tab lives as long as the context of the first call, so that one has no timeout.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(window.width, window.height)); err != nil {
		t.Fatal(err)
	}
	// what the content security policy blocks is an error of the page
	const watch = `window.violations = []; document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample))`
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	for i, a := range actions {
		if err := chromedp.Do(ctx, a); err != nil {
			b.save("failed")
			b.Fatalf("step %d: %v\n%s", i+1, err, b.text())
		}
	}
}

func (b *tab) open(path string) { b.Helper(); b.do(chromedp.Navigate(b.server.URL + path)) }

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := tryEval[T](b, expression)
	if err != nil {
		b.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

func tryEval[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
	return text
}

// waitText waits until the page shows a text.
func (b *tab) waitText(text string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(b.text(), text); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.save("failed")
			b.Fatalf("no %q on the page:\n%s", text, b.text())
		}
	}
}

// save writes a picture of the page to the directory FERMATA_PICTURES, if it is set.
func (b *tab) save(name string) {
	dir := os.Getenv("FERMATA_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Logf("picture %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.Name(), "/", "-")+"-"+name+".png"), picture, 0o600); err != nil {
		b.Log(err)
	}
}

// scheme sets the colour scheme: light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return chromedp.Void{}, err
	}
}

// noScript switches scripts of the page off.
func noScript(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return chromedp.Void{}, err
}

// check fails if axe-core or the content security policy found something, or if the page is wider
// than the window.
func (b *tab) check(name string) {
	b.Helper()
	b.save(name)
	source, err := os.ReadFile("axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.Fatalf("axe-core is missing, run make need-chromium: %v", err)
	}
	type violation struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	// a page that is still loading when it is checked is checked again
	const run = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`
	result, err := tryEval[string](b, string(source)+";"+run)
	for try := 0; err != nil && try < 5; try++ {
		time.Sleep(300 * time.Millisecond)
		result, err = tryEval[string](b, string(source)+";"+run)
	}
	if err != nil {
		b.Fatalf("axe: %v", err)
	}
	var found []violation
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		b.Fatal(err)
	}
	for _, v := range found {
		for _, n := range v.Nodes {
			b.Errorf("%s: %s: %s\n%.300s\n%.300s", name, v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
	for _, v := range eval[[]string](b, `window.violations ?? []`) {
		b.Errorf("%s: blocked by the content security policy: %s", name, v)
	}
	if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		b.Errorf("%s: the page is %d px wider than the window", name, over)
	}
}

// openServer starts a server with the graphs of these tests and the requests of the tests.
func openServer(t *testing.T, wrap ...func(api http.Handler) http.Handler) *webtest.Server {
	t.Helper()
	testtier.Needs(t, "Chromium")
	if browser == nil {
		t.Fatal("Chromium is missing: run make need-chromium")
	}
	return webtest.Open(t, webtest.Config{Graphs: graphs(t), Site: func(api http.Handler) (http.Handler, error) {
		for _, w := range wrap {
			api = w(api)
		}
		return web.New(web.Config{API: api})
	}})
}

// ask starts a run and returns the id of its request.
func ask(t *testing.T, s *webtest.Server, graphID, key, input string) string {
	t.Helper()
	outcome, err := s.Executor.Run(t.Context(), executor.RunRequest{Account: webtest.Account, StateKey: key, Graph: graphID, Input: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	waits, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waits.Interrupts) != 1 {
		t.Fatalf("%+v", outcome)
	}
	return waits.Interrupts[0].ID
}
