package external_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func TestDeliver_BringsTheAnswerSignedAndCompletesOnlyThen(t *testing.T) {
	r := receive(t, nil)
	o := begin(t, newProvider(t, nil), asking(r.URL+"/hook?token=1"))
	q := o.asks()
	if _, tries := r.got(); tries != 0 {
		t.Fatal("it was called before the answer")
	}
	result, err := o.execute(says(q, `{"action":"approve"}`))
	if err != nil {
		t.Fatal(err)
	}
	done, ok := result.Outcome.(provider.Completed)
	if !ok || string(done.Output) != `{"kind":"refund","answer":{"action":"approve"},"by":"ann","at":"2026-08-21T10:00:00Z"}` || !slices.Equal(result.Applied, []string{q.ID}) {
		t.Errorf("it came to %#v", result)
	}
	taken, _ := r.got()
	if len(taken) != 1 {
		t.Fatalf("%d webhooks", len(taken))
	}
	m := taken[0]
	if m.Type != "request.answered" || !m.Timestamp.Equal(decidedAt) || m.Data.StateKey != "refund-17" || m.Data.Interrupt != q.ID || m.Data.Kind != "refund" ||
		string(m.Data.Answer) != `{"action":"approve"}` || m.Data.By != "ann" || !m.Data.At.Equal(decidedAt) {
		t.Errorf("%+v", m)
	}
}

// A requester must learn about an expiry, and must not take it for a rejection or an approval.
func TestI11_ALapseIsDeliveredAsALapseAndTheRunFails(t *testing.T) {
	r := receive(t, nil)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	result, err := o.execute(lapses(q))
	failed, ok := result.Outcome.(provider.Failed)
	if err != nil || !ok || failed.Code != "expired" || !slices.Equal(result.Applied, []string{q.ID}) {
		t.Errorf("it returned %#v, %v", result, err)
	}
	if taken, _ := r.got(); len(taken) != 1 || taken[0].Type != "request.expired" || taken[0].Data.Answer != nil || taken[0].Data.By != "" {
		t.Errorf("%+v", taken)
	}
}

// A refusal does not fit the schema of the answers, and a program may take it for a yes.
func TestDeliver_RefusalIsNoAnswer(t *testing.T) {
	for verb, code := range map[fermata.Verb]string{fermata.VerbReturn: "returned", fermata.VerbReject: "rejected"} {
		r := receive(t, nil)
		o := begin(t, newProvider(t, nil), asking(r.URL))
		q := o.asks()
		refused := says(q, "")
		refused.Data, refused.Refusal = nil, &fermata.Refusal{Decision: fermata.Decision{Verb: verb, Reason: "too big"}}
		result, err := o.execute(refused)
		if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != code || !slices.Equal(result.Applied, []string{q.ID}) {
			t.Errorf("%s: it returned %#v, %v", verb, result, err)
		}
		taken, _ := r.got()
		if len(taken) != 1 || taken[0].Type != "request."+code || taken[0].Data.Answer != nil || taken[0].Data.Refusal == nil {
			t.Fatalf("%s: %+v", verb, taken)
		}
		if got := taken[0].Data.Refusal; got.Verb != string(verb) || got.Reason != "too big" || got.By != "ann" || !got.At.Equal(decidedAt) {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

func TestDeliver_RepeatedMessageHasTheSameIDAndBody(t *testing.T) {
	var bodies []string
	r := receive(t, nil)
	p := newProvider(t, nil)
	o := begin(t, p, asking(r.URL))
	q := o.asks()
	for range 3 { // as after a crash between the delivery and recording it
		if _, err := o.execute(says(q, `{"action":"approve"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.taken {
		bodies = append(bodies, m.Type)
	}
	if taken, tries := r.got(); len(taken) != 1 || tries != 3 {
		t.Errorf("%d attempts, and new messages: %v", tries, bodies)
	}
	another := begin(t, p, asking(r.URL))
	another.run.ID = "run_2"
	if _, err := another.execute(says(another.asks(), `{"action":"approve"}`)); err != nil {
		t.Fatal(err)
	}
	if taken, _ := r.got(); len(taken) != 2 {
		t.Error("another run has the same id")
	}
}

func TestDeliver_EachSecretSigns(t *testing.T) {
	old, fresh := external.NewSecret(), external.NewSecret()
	r := receive(t, nil)
	// a secret that is known, one that is not; each alone is sufficient
	r.secrets = []string{old, fresh}
	p := newProvider(t, func(c *external.Config) {
		c.Secrets = func(_ context.Context, account string) ([]string, error) {
			return map[string][]string{"acme": {fresh, old}}[account], nil
		}
	})
	o := begin(t, p, asking(r.URL))
	if _, err := o.execute(says(o.asks(), `1`)); err != nil {
		t.Fatal(err)
	}
	if taken, _ := r.got(); len(taken) != 1 {
		t.Errorf("%d taken", len(taken))
	}
}

func TestDeliver_RetriesByTheSchedule(t *testing.T) {
	r := receive(t, status(http.StatusInternalServerError))
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	for o.attempt = range external.Schedule {
		result, err := o.execute(says(q, `1`))
		again, ok := errors.AsType[*fermata.RetryError](err)
		least := external.Schedule[o.attempt]
		if !ok || again.After < least || again.After >= least+least/5 || errors.Is(err, provider.ErrPark) || result.Outcome != nil {
			t.Errorf("attempt %d: %v, %#v", o.attempt, err, again)
		}
	}
	o.attempt = len(external.Schedule)
	if _, err := o.execute(says(q, `1`)); !errors.Is(err, provider.ErrPark) {
		t.Errorf("after the last attempt: %v", err)
	}
	o.attempt, r.reply = 0, nil // an operator has acted
	if result, err := o.execute(says(q, `1`)); err != nil {
		t.Errorf("after parking: %#v, %v", result, err)
	}
}

func TestDeliver_FollowsTheReceiversStatus(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		reply      http.HandlerFunc
		delivered  bool
		givesUp    bool
		after, max time.Duration
	}{
		"200":                          {reply: status(200), delivered: true},
		"204":                          {reply: status(204), delivered: true},
		"299":                          {reply: status(299), delivered: true},
		"redirect":                     {reply: status(302, "Location", "http://127.0.0.1:1/"), after: 5 * time.Second, max: 6 * time.Second},
		"not modified":                 {reply: status(304), after: 5 * time.Second, max: 6 * time.Second},
		"not found":                    {reply: status(404), after: 5 * time.Second, max: 6 * time.Second},
		"gone":                         {reply: status(410), givesUp: true},
		"429":                          {reply: status(429, "Retry-After", "90"), after: 90 * time.Second, max: 90 * time.Second},
		"503 with a date":              {reply: status(503, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), after: 59 * time.Minute, max: time.Hour},
		"sooner than we like":          {reply: status(429, "Retry-After", "0"), after: 5 * time.Second, max: 6 * time.Second},
		"later than we like":           {reply: status(429, "Retry-After", "99999999999"), after: day, max: day},
		"a date in the distant future": {reply: status(503, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), after: day, max: day},
		"an invalid time":              {reply: status(429, "Retry-After", "soon"), after: 5 * time.Second, max: 6 * time.Second},
		"a time before the start":      {reply: status(429, "Retry-After", "-5"), after: 5 * time.Second, max: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t, c.reply)
			o := begin(t, newProvider(t, nil), asking(r.URL))
			result, err := o.execute(says(o.asks(), `1`))
			again, retries := errors.AsType[*fermata.RetryError](err)
			switch {
			case c.delivered:
				if _, ok := result.Outcome.(provider.Completed); err != nil || !ok {
					t.Errorf("%#v, %v", result, err)
				}
			case c.givesUp:
				if !errors.Is(err, provider.ErrPark) || retries {
					t.Errorf("%v", err)
				}
			case !retries || again.After < c.after || again.After > c.max:
				t.Errorf("%v, %+v", err, again)
			}
		})
	}
}

func TestDeliver_FollowsNoRedirect(t *testing.T) {
	var hits atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		r := receive(t, status(code, "Location", other.URL))
		o := begin(t, newProvider(t, nil), asking(r.URL))
		_, err := o.execute(says(o.asks(), `1`))
		if failed, ok := errors.AsType[*external.DeliveryError](err); !ok || failed.Status != code {
			t.Errorf("%d: %v", code, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d hits", hits.Load())
	}
}

// A kept connection would use an address that was checked long ago.
func TestDeliver_EachOverAConnectionOfItsOwn(t *testing.T) {
	var connections atomic.Int64
	r := &receiver{t: t, secrets: []string{secret}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	for range 3 {
		if _, err := o.execute(says(q, `1`)); err != nil {
			t.Fatal(err)
		}
	}
	if connections.Load() != 3 {
		t.Errorf("%d connections", connections.Load())
	}
}

func TestDeliver_AResponseWithoutEndIsCutOff(t *testing.T) {
	over := make(chan struct{})
	r := receive(t, func(w http.ResponseWriter, request *http.Request) {
		defer close(over)
		for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	o := begin(t, newProvider(t, nil), asking(r.URL))
	if _, err := o.execute(says(o.asks(), `1`)); err != nil {
		t.Error(err)
	}
	<-over
}

func TestDeliver_AHeadWithoutEndIsAFailure(t *testing.T) {
	r := receive(t, status(200, "X-Filler", strings.Repeat("x", 70<<10)))
	o := begin(t, newProvider(t, nil), asking(r.URL))
	_, err := o.execute(says(o.asks(), `1`))
	if _, ok := errors.AsType[*fermata.RetryError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestDeliver_AReceiverThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	release := make(chan struct{})
	r := receive(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	p := newProvider(t, nil)
	p.SetTimeout(20 * time.Millisecond)
	o := begin(t, p, asking(r.URL))
	_, err := o.execute(says(o.asks(), `1`))
	failed, ok := errors.AsType[*external.DeliveryError](err)
	if _, retries := errors.AsType[*fermata.RetryError](err); !ok || !retries || failed.Problem != "it timed out" {
		t.Errorf("%v", err)
	}
}

// A run that is lost to another owner must not fail, and the attempt is not counted.
func TestDeliver_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	r := receive(t, func(http.ResponseWriter, *http.Request) { cancel(); <-release })
	defer close(release)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	result, err := o.provider.Execute(ctx, provider.Execution{Run: o.run, Input: []byte(o.input), Answers: []provider.Answer{says(q, `1`)}, Owner: o})
	if _, retries := errors.AsType[*fermata.RetryError](err); !errors.Is(err, context.Canceled) || retries || result.Outcome != nil {
		t.Errorf("%#v, %v", result, err)
	}
}

func TestDeliver_RequiresAMatchingCertificate(t *testing.T) {
	r := &receiver{t: t, secrets: []string{secret}}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	r.Config.ErrorLog = nil
	untrusted := begin(t, newProvider(t, nil), asking(r.URL))
	_, err := untrusted.execute(says(untrusted.asks(), `1`))
	if failed, ok := errors.AsType[*external.DeliveryError](err); !ok || failed.Problem != "its certificate is not trusted" {
		t.Errorf("%v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	trusted := begin(t, newProvider(t, func(c *external.Config) { c.Roots = roots }), asking(r.URL))
	if _, err := trusted.execute(says(trusted.asks(), `1`)); err != nil {
		t.Error(err)
	}
	if _, tries := r.got(); tries != 1 {
		t.Errorf("called %d times", tries)
	}
}

func TestDeliver_WithoutASecretNothingIsSentUnsigned(t *testing.T) {
	r := receive(t, nil)
	var secrets []string
	broken := errors.New("whsec_of the vault")
	var failing error
	p := newProvider(t, func(c *external.Config) {
		c.Secrets = func(context.Context, string) ([]string, error) { return secrets, failing }
	})
	result, err := begin(t, p, asking(r.URL)).execute()
	if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != "invalid_input" {
		t.Errorf("a request of an account without a secret: %#v, %v", result, err)
	}
	secrets = []string{secret}
	o := begin(t, p, asking(r.URL))
	q := o.asks()
	for name, bad := range map[string][]string{
		"none any more": {}, "no prefix": {strings.TrimPrefix(secret, "whsec_")}, "no base64": {"whsec_%%%"}, "too short": {"whsec_c2hvcnQ="},
		"too long": {"whsec_" + strings.Repeat("QUFB", 22)}, "the second": {secret, "whsec_c2hvcnQ="},
	} {
		secrets = bad
		_, err := o.execute(says(q, `1`))
		if !errors.Is(err, provider.ErrPark) || len(bad) > 0 && strings.Contains(err.Error(), strings.TrimPrefix(bad[len(bad)-1], "whsec_")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	failing = broken
	if _, err := o.execute(says(q, `1`)); err == nil || errors.Is(err, provider.ErrPark) || strings.Contains(err.Error(), "vault") {
		t.Errorf("a vault that is down: %v", err)
	}
	if _, tries := r.got(); tries != 0 {
		t.Errorf("called %d times", tries)
	}
}

// An error contains neither data of the receiver nor secrets.
func TestI7_ErrorsHoldNothingOfTheMessageTheSecretOrTheURL(t *testing.T) {
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = garbage.Close() }()
	go func() {
		for {
			conn, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("CANARY-response\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	refuses := receive(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://CANARY-location/")
		w.WriteHeader(500)
		_, _ = w.Write([]byte("CANARY-body"))
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, base := range map[string]string{
		"garbage": "http://" + garbage.Addr().String(), "500": refuses.URL, "closed": closed.URL, "no such name": "http://nobody.invalid", "not TLS": strings.Replace(refuses.URL, "http:", "https:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, newProvider(t, func(c *external.Config) {
				c.Allow = append(c.Allow, "nobody.invalid")
				c.Resolver = names(t, "somebody.invalid", "127.0.0.1")
			}), asking(base+"/CANARY-path?token=CANARY-query"))
			_, err := o.execute(says(o.asks(), `"CANARY-answer"`))
			if _, ok := errors.AsType[*fermata.RetryError](err); !ok {
				t.Fatalf("%v", err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, "CANARY") || strings.Contains(text, secret[6:]) || strings.Contains(text, o.run.Ref) {
					t.Errorf("%s", text)
				}
			}
		})
	}
}
