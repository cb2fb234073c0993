package browsertest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// screenshotsVariable is the environment variable with the directory for the pictures; make
// screenshots sets it.
const screenshotsVariable = "FERMATA_SCREENSHOTS"

// TestScreenshots writes pictures of the main pages, from the data of the demo.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv(screenshotsVariable)
	if dir == "" {
		return // make screenshots runs it
	}
	url, token, signIn := startDemo(t)
	c, err := client.New(url, token)
	if err != nil {
		t.Fatal(err)
	}
	open := make(map[string]api.Request)
	list, err := c.Requests(t.Context(), client.Query{State: "pending", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Items {
		open[r.StateKey] = r
	}
	done, err := c.Requests(t.Context(), client.Query{State: "decided", Limit: 100})
	if err != nil || len(done.Items) == 0 {
		t.Fatalf("%v, %v", done, err)
	}
	talk(t, c)
	tab, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate(signIn)); err != nil { // the link works once
		t.Fatal(err)
	}
	for _, shot := range []struct {
		name, path string
		window     size
		dark       bool
	}{
		{"inbox", "/inbox?id=" + open["refund-1050"].ID, desk, false},
		{"inbox-dark", "/inbox?id=" + open["refund-1050"].ID, desk, true},
		{"inbox-phone", "/inbox", phone, false},
		{"request", "/requests/" + open["refund-1041"].ID, desk, false},
		{"request-dark", "/requests/" + open["drop-users"].ID, desk, true},
		{"request-phone", "/requests/" + open["drop-users"].ID, phone, false},
		{"review", "/requests/" + open["article-tea"].ID, desk, false},
		{"choice", "/requests/" + open["restore-orders"].ID, desk, false},
		{"form", "/requests/" + open["supplier-blum"].ID, desk, false},
		{"hold", "/requests/" + open["deploy-checkout"].ID, desk, false},
		{"in-doubt", "/requests/" + open["payout-blum"].ID, desk, false},
		{"approve", "/requests/" + open["refund-1041"].ID + "/approve", desk, false},
		{"edit", "/requests/" + open["refund-1041"].ID + "/edit", desk, false},
		{"batch", "/batch?like=" + open["refund-1041"].ID, desk, false},
		{"runs", "/runs", desk, false},
		{"run", "/runs/article-coffee", desk, false},
		{"run-phone", "/runs/article-coffee", phone, false},
		{"graph", "/graphs/inproc:content-review", desk, false},
		{"policies", "/policies", desk, false},
		{"routes", "/routes", desk, false},
		{"audit", "/audit", desk, false},
		{"evidence", "/audit/requests/" + done.Items[0].ID, desk, false},
		{"analytics", "/analytics", desk, false},
		{"analytics-dark", "/analytics", desk, true},
		{"me", "/me", desk, false},
		{"admin", "/admin", desk, false},
		{"deliveries", "/deliveries", desk, false},
		{"docs", "/docs", desk, false},
		{"chat", "/chat/mail", desk, false},
		{"chat-dark", "/chat/meeting", desk, true},
		{"chat-phone", "/chat/mail", phone, false},
	} {
		takeScreenshot(t, tab, url+shot.path, filepath.Join(dir, shot.name+".png"), shot.window, shot.dark)
	}
}

// talk has two conversations with the assistant of the demo.
func talk(t *testing.T, c *client.Client) {
	t.Helper()
	for _, talk := range []struct {
		id    string
		lines []string
	}{
		{"meeting", []string{"meet Anna", "the one from sales"}},
		{"mail", []string{"write to Anna about the contract", "why?", "legal", "write to Tom about the invoice"}},
	} {
		if _, err := c.CreateConversation(t.Context(), api.CreateConversation{ID: talk.id}); err != nil {
			t.Fatal(err)
		}
		for _, line := range talk.lines {
			if _, err := c.SendMessage(t.Context(), talk.id, api.SendMessage{Text: line}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func takeScreenshot(t *testing.T, tab context.Context, url, file string, window size, dark bool) {
	t.Helper()
	colours := "light"
	if dark {
		colours = "dark"
	}
	ctx, stop := context.WithTimeout(tab, 30*time.Second)
	defer stop()
	for _, action := range []chromedp.Action[chromedp.Void]{chromedp.EmulateViewport(window.width, window.height), scheme(colours), chromedp.Navigate(url)} {
		if err := chromedp.Do(ctx, action); err != nil {
			t.Fatalf("%s: %v", url, err)
		}
	}
	const counted = `new Promise((done) => { const timer = setInterval(() => { if (document.getElementById("nav-inbox")?.textContent) { clearInterval(timer); done(true); } }, 20); })`
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](counted, chromedp.EvalAwaitPromise)); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

// startDemo runs the demo until the test ends.
func startDemo(t *testing.T) (url, token, signIn string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../../bin/fermata", "demo", "--json", "--every", "0s", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	var ready struct{ URL, Token, SignIn string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return ready.URL, ready.Token, ready.SignIn
}
