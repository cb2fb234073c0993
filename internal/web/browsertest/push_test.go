package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/webpush"
	deskpkg "github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pushfake"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// pushSite is a server that notifies browsers through a loopback push service.
type pushSite struct {
	*webtest.Server
	service *pushfake.Service
	browser pushfake.Browser
}

func openPushSite(t *testing.T) *pushSite {
	t.Helper()
	testtier.Needs(t, "Chromium")
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := webpush.New(webpush.Config{Key: key, Subject: "mailto:ops@example.com", Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &pushSite{service: pushfake.New()}
	peer := httptest.NewServer(s.service)
	t.Cleanup(peer.Close)
	s.browser = s.service.Subscribe(peer.URL, key.Public())
	s.Server = webtest.Open(t, webtest.Config{
		Graphs: graphs(t), WebPush: c, Desk: executor.DeskConfig{Channels: []channel.Channel{c}, BaseURL: "https://fermata.example"},
		Site: func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api}) },
	})
	return s
}

// notifyingBrowser starts a Chromium that can show notifications. The headless shell of the other
// tests cannot.
func notifyingBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		path, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		t.Fatal("Chromium is missing: run make need-chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	running, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(running, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return running
}

// openProfile opens the profile of ann in a tab. Headless Chromium has no push service, so
// PushManager returns the subscription of the loopback push service. The rest is that of Chromium.
func (s *pushSite) openProfile(t *testing.T, setting cdpbrowser.PermissionSetting) *tab {
	t.Helper()
	b := newTabOf(t, notifyingBrowser(t), s.Server, desk)
	subscription := fmt.Sprintf(`{
		endpoint: %q, unsubscribe() { localStorage.removeItem("subscribed"); return Promise.resolve(true); },
		toJSON() { return {endpoint: %q, keys: {p256dh: %q, auth: %q}}; },
	}`, s.browser.Endpoint, s.browser.Endpoint, s.browser.P256DH, s.browser.Auth)
	source := `{
		const subscription = ` + subscription + `;
		PushManager.prototype.getSubscription = () => Promise.resolve(localStorage.getItem("subscribed") ? subscription : null);
		PushManager.prototype.subscribe = (options) => {
			localStorage.setItem("subscribed", btoa(String.fromCharCode(...options.applicationServerKey)).length);
			return Promise.resolve(subscription);
		};
	}`
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source}); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.CallBrowser(b.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: setting, Origin: s.URL, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(s.SignInLink("ann", "/me")), chromedp.WaitVisible(`#push form[data-push]`))
	return b
}

// A person turns on notifications with the switch. The notification of a request has its facts; a
// click opens the page of the request, and decides nothing. The outcome replaces the notification.
func TestPush_NotificationOpensTheRequestAndDoesNotDecide(t *testing.T) {
	s := openPushSite(t)
	b := s.openProfile(t, cdpbrowser.PermissionSettingGranted)
	b.check("off")
	b.do(chromedp.Click(`#push [role=switch]`))
	b.waitText("This browser is notified.")
	b.do(chromedp.WaitVisible(`#push [data-here]`))
	if !eval[bool](b, `document.querySelector("#push [role=switch]").checked`) {
		t.Error("the switch is off")
	}
	b.check("on")

	id := ask(t, s.Server, "inproc:test-refund", "refund-1", `{"order":17,"payment":1,"amount":"120.00"}`)
	shown := b.push(s.message(t, 1), func(all []notification) bool { return len(all) == 1 })
	if shown[0].Title != "Refund on order 17, payment 1" || !strings.Contains(shown[0].Body, "amount: 120.00") || !strings.Contains(shown[0].Body, "order: 17") || strings.Contains(shown[0].Body, "parcel") || shown[0].Data.Path != "/requests/"+id || shown[0].Actions != 0 {
		t.Errorf("notification %+v", shown[0])
	}

	worker := b.worker()
	page := "/requests/" + id
	for path, want := range map[string]string{
		page: page, page + "/approve": "/inbox", page + "?x=1": "/inbox", "https://evil.example" + page: "/inbox", "//evil.example" + page: "/inbox", `/requests/\evil.example`: "/inbox", "javascript:alert(1)": "/inbox",
	} {
		// only a real click may open a window, and headless Chromium shows nothing to click
		opened := eval[string](worker, fmt.Sprintf(`new Promise((resolve) => {
			self.clients.openWindow = (url) => { resolve(url); return Promise.resolve(null); };
			const event = new ExtendableEvent("notificationclick");
			event.waitUntil = (work) => work.then((result) => resolve("focused " + result), (err) => resolve(String(err)));
			event.notification = {data: {path: %q}, close() {}};
			self.dispatchEvent(event);
		})`, path))
		if opened != s.URL+want {
			t.Errorf("a click on a notification of %s opens %s", path, opened)
		}
	}
	b.open("/requests/" + id)
	b.waitText("Approve")
	if r := s.request(t, id); r.State != deskpkg.StateOpen || r.Decision != nil {
		t.Errorf("the request is %s", r.State)
	}

	if _, err := s.Executor.Run(t.Context(), executor.RunRequest{Account: webtest.Account, StateKey: "refund-1", ResumeID: "1", Actor: "bob", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(`{"verb":"approve"}`)}}}); err != nil {
		t.Fatal(err)
	}
	b.push(s.message(t, 2), func(all []notification) bool {
		return len(all) == 1 && strings.Contains(all[0].Title, "approved by bob")
	})
	b.push([]byte("not JSON"), func(all []notification) bool {
		return slices.ContainsFunc(all, func(n notification) bool { return n.Data.Path == "/inbox" })
	})
	for _, v := range eval[[]string](b, `window.violations`) {
		t.Errorf("blocked by the content security policy: %s", v)
	}

	b.open("/me")
	b.do(chromedp.WaitVisible(`#push [data-here]`), chromedp.Click(`#push [role=switch]`))
	b.waitText("The browser is no longer notified.")
	if left, err := s.Executor.Person(t.Context(), webtest.Account, "ann"); err != nil || len(left.Addresses) != 0 {
		t.Errorf("%+v, %v", left.Addresses, err)
	}
}

// A browser that blocks notifications says so, and the switch cannot be used.
func TestPush_BlockedNotificationsAreExplained(t *testing.T) {
	b := openPushSite(t).openProfile(t, cdpbrowser.PermissionSettingDenied)
	b.waitText("Notifications of this site are blocked.")
	if eval[bool](b, `!document.querySelector("#push [role=switch]").disabled`) {
		t.Error("the switch can be used")
	}
	b.check("blocked")
}

// message returns the n-th message that the browser gets, decrypted.
func (s *pushSite) message(t *testing.T, n int) []byte {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if all := s.service.Messages(s.browser); len(all) >= n {
			return all[n-1].Data
		}
		if time.Now().After(deadline) {
			t.Fatalf("no message: %v", s.service.Err())
		}
	}
}

func (s *pushSite) request(t *testing.T, id string) deskpkg.Request {
	t.Helper()
	r, err := s.Executor.RequestDocument(t.Context(), webtest.Account, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// push delivers a message to the service worker, as a push service does, and waits until the
// browser shows what is wanted. Chromium drops a message when its worker does not start in time;
// then the message is delivered again.
func (b *tab) push(data []byte, wanted func([]notification) bool) (all []notification) {
	b.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		b.deliver(data)
		for again := time.Now().Add(10 * time.Second); time.Now().Before(again); time.Sleep(30 * time.Millisecond) {
			if all = b.notifications(); wanted(all) {
				return all
			}
		}
		if time.Now().After(end) {
			b.Fatalf("the browser shows %+v after the message %s", all, data)
		}
	}
}

func (b *tab) deliver(data []byte) {
	b.Helper()
	registered := func(e serviceworker.EventWorkerRegistrationUpdated) bool {
		return slices.ContainsFunc(e.Registrations, func(r *serviceworker.Registration) bool { return r.ScopeURL == b.server.URL+"/" })
	}
	_, _ = chromedp.Call(b.ctx, serviceworker.Disable, cdp.Empty{})
	e, err := chromedp.Run(b.ctx, chromedp.WaitEvent(serviceworker.WorkerRegistrationUpdated, registered, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{})
		return err
	})))
	if err != nil {
		b.Fatal(err)
	}
	at := slices.IndexFunc(e.Registrations, func(r *serviceworker.Registration) bool { return r.ScopeURL == b.server.URL+"/" })
	if _, err := chromedp.Call(b.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: b.server.URL, RegistrationID: e.Registrations[at].RegistrationID, Data: string(data)}); err != nil {
		b.Fatal(err)
	}
}

// notification is what a browser shows.
type notification struct {
	Title, Body string
	Actions     int
	Data        struct{ Path string }
}

// notifications returns what the browser shows.
func (b *tab) notifications() (all []notification) {
	b.Helper()
	const list = `navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => JSON.stringify(all.map((n) => ({title: n.title, body: n.body, actions: n.actions?.length ?? 0, data: n.data}))))`
	if err := json.Unmarshal([]byte(eval[string](b, list)), &all); err != nil {
		b.Fatal(err)
	}
	return all
}

// worker returns the service worker of the site.
func (b *tab) worker() *tab {
	b.Helper()
	all, err := chromedp.Targets(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	at := slices.IndexFunc(all, func(i *target.Info) bool { return i.URL == b.server.URL+"/push-worker.js" })
	if at < 0 {
		b.Fatalf("no service worker among %d targets", len(all))
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(all[at].TargetID))
	b.Cleanup(cancel)
	// the context of the first call has no timeout, see newTabOf
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		b.Fatal(err)
	}
	return &tab{b.T, ctx, b.server}
}
