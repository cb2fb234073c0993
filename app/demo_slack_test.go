package app

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/demo"
)

// fakeClient uses the pages of the fake Slack workspace as a browser does.
type fakeClient struct {
	*testing.T
	base    string
	channel string
	people  map[string]string
}

func (f *fakeClient) get(person string) string {
	f.Helper()
	_, _, body := getPage(f.T, http.DefaultClient, f.base+"/client?"+url.Values{"as": {f.people[person]}, "channel": {f.channel}}.Encode())
	return body
}

// post sends a form of the page.
func (f *fakeClient) post(person, path string, fields ...string) string {
	f.Helper()
	form := url.Values{"as": {f.people[person]}, "channel": {f.channel}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	answer, err := http.PostForm(f.base+path, form)
	if err != nil {
		f.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return string(body)
}

// message returns the time stamp of the message that contains a text and has a button.
func (f *fakeClient) message(person, text, action string) (ts string) {
	f.Helper()
	eventually(f.T, "a message with "+text+" and the button "+action, func() bool {
		for _, part := range strings.Split(f.get(person), `<div class="message`)[1:] {
			found := regexp.MustCompile(`name="ts" value="([^"]+)"><input type="hidden" name="action" value="` + action + `"`).FindStringSubmatch(part)
			if strings.Contains(html.UnescapeString(part), text) && found != nil {
				ts = found[1]
				return true
			}
		}
		return false
	})
	return ts
}

// openSlackDemo starts a demo with the fake workspace, and returns its page and a client.
func openSlackDemo(t *testing.T) (*fakeClient, *client.Client, demo.Ready) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		done <- run(ctx, []string{"demo", "--slack", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--every", "0s", "--json"}, w, &errs)
		w.Close()
	}()
	var ready demo.Ready
	if err := json.NewDecoder(r).Decode(&ready); err != nil || ready.Slack == "" {
		t.Fatalf("%+v, %v, %s", ready, err, errs.String())
	}
	t.Cleanup(func() {
		stop()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("the demo ended with %d: %s", code, errs.String())
		}
	})
	at, err := url.Parse(ready.Slack)
	if err != nil {
		t.Fatal(err)
	}
	server, err := client.New(ready.URL, ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeClient{T: t, base: "http://" + at.Host, channel: at.Query().Get("channel"), people: map[string]string{"dana": at.Query().Get("as")}}, server, ready
}

// A person without a Slack workspace tries Approve, Reject and Edit in a browser.
func TestDemo_SlackRoundTrip(t *testing.T) {
	f, server, ready := openSlackDemo(t)
	eve := regexp.MustCompile(`/client\?as=(\w+)&amp;channel=\w+">eve<`).FindStringSubmatch(f.get("dana"))
	if eve == nil {
		t.Fatal(f.get("dana"))
	}
	f.people["eve"] = eve[1]
	if key, err := server.PushKey(t.Context()); err != nil || key.PublicKey == "" {
		t.Errorf("the demo cannot notify browsers: %v", err)
	}
	request := func(key string) api.Request {
		t.Helper()
		view, err := server.Run(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range view.Requests {
			return one
		}
		t.Fatalf("%s has no request", key)
		return api.Request{}
	}

	ts := f.message("eve", "Jonas Weber", "approve")
	f.post("eve", "/client/click", "ts", ts, "action", "approve")
	eventually(t, "eve gets a link that only eve sees", func() bool {
		return strings.Contains(f.get("eve"), ready.URL+"/link/") && !strings.Contains(f.get("dana"), ready.URL+"/link/")
	})
	if d := request("refund-1047").Decision; d != nil {
		t.Fatalf("the click of an account that is not linked decided: %+v", d)
	}
	f.post("dana", "/client/click", "ts", ts, "action", "approve")
	eventually(t, "dana has approved", func() bool {
		d := request("refund-1047").Decision
		return d != nil && d.Verdict == "approve" && d.By == demo.Person && strings.Contains(d.Via, "linked")
	})
	eventually(t, "the message says so", func() bool { return strings.Contains(f.get("eve"), "approved by dana") })

	deny := f.message("dana", "Luca Bianchi", "reject")
	if page := f.post("dana", "/client/click", "ts", deny, "action", "reject"); !strings.Contains(page, `role="dialog"`) {
		t.Fatalf("no dialog in\n%s", page)
	}
	field := regexp.MustCompile(`name="(v:[^"]+)"`).FindStringSubmatch(f.get("dana"))
	if field == nil {
		t.Fatal(f.get("dana"))
	}
	f.post("dana", "/client/submit", field[1], "a duplicate")
	eventually(t, "dana has denied", func() bool {
		d := request("refund-1052").Decision
		return d != nil && d.Verdict == "reject" && d.By == demo.Person && strings.Contains(string(d.Answer), "duplicate")
	})
}

// One click in Slack releases the hold of examples/dataops. A rejection and a return give a reason,
// and the new plan after a return is a new message.
func TestDemo_SlackHold(t *testing.T) {
	f, server, _ := openSlackDemo(t)
	for _, customer := range []string{"7", "8"} {
		if _, err := server.Start(t.Context(), "inproc:dataops", "forget-"+customer, json.RawMessage(`{"request":"forget customer `+customer+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	report := func(key string, want ...string) {
		t.Helper()
		var out string
		eventually(t, key+" is finished", func() bool {
			view, err := server.Run(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			done, ok := view.Outcome.(fermata.Completed)
			out = string(done.Output)
			return ok
		})
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s: %q is missing in %s", key, part, out)
			}
		}
	}
	submit := func(ts, action, reason string) {
		t.Helper()
		if page := f.post("dana", "/client/click", "ts", ts, "action", action); !strings.Contains(page, `role="dialog"`) {
			t.Fatalf("no dialog in\n%s", page)
		}
		f.post("dana", "/client/submit", "v:f0", reason)
	}
	f.post("dana", "/client/click", "ts", f.message("dana", "forget customer 42", "approve"), "action", "approve")
	report("forget-customer-42", "granted by dana")

	submit(f.message("dana", "forget customer 7", "reject"), "reject", "they have an open order")
	report("forget-7", "denied by dana: they have an open order")

	first := f.message("dana", "forget customer 8", "return")
	submit(first, "return", "keep the rest")
	second := f.message("dana", "returned by dana: keep the rest", "approve")
	if second == first {
		t.Error("the new plan has no message of its own")
	}
	f.post("dana", "/client/click", "ts", second, "action", "approve")
	report("forget-8", "granted by dana", "archived = yes")
}

// A second demo on the same data has an empty workspace, and posts the open requests again.
func TestDemo_SlackPostsOpenRequestsAgain(t *testing.T) {
	data := t.TempDir()
	shown := func(want string) {
		t.Helper()
		ctx, stop := context.WithCancel(context.Background())
		r, w := io.Pipe()
		done := make(chan int, 1)
		var errs bytes.Buffer
		go func() {
			done <- run(ctx, []string{"demo", "--slack", "--data", data, "--addr", "127.0.0.1:0", "--every", "0s", "--json"}, w, &errs)
			w.Close()
		}()
		var ready demo.Ready
		if err := json.NewDecoder(r).Decode(&ready); err != nil || ready.Slack == "" {
			t.Fatalf("%+v, %v, %s", ready, err, errs.String())
		}
		at, err := url.Parse(ready.Slack)
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeClient{T: t, base: "http://" + at.Host, channel: at.Query().Get("channel"), people: map[string]string{"dana": at.Query().Get("as")}}
		f.message("dana", want, "approve")
		stop()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("the demo ended with %d: %s", code, errs.String())
		}
	}
	shown("Jonas Weber")
	shown("Jonas Weber")
}

func TestDemoPublicURL(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:8080": "http://127.0.0.1:8080", ":8080": "http://localhost:8080", "0.0.0.0:81": "http://localhost:81", "[::1]:82": "http://[::1]:82"} {
		if public, listen, err := demo.PublicURL(addr); err != nil || public != want || listen != addr {
			t.Errorf("%s: %s, %s, %v", addr, public, listen, err)
		}
	}
	if public, listen, err := demo.PublicURL("127.0.0.1:0"); err != nil || public != "http://"+listen || strings.HasSuffix(listen, ":0") {
		t.Errorf("%s, %s, %v", public, listen, err)
	}
	if _, _, err := demo.PublicURL("x"); err == nil {
		t.Error("x is accepted")
	}
}
