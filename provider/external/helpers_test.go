package external_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

// A proxy from the environment would bypass the guard. There is none at this address: using it
// fails.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Setenv(name, "http://127.0.0.1:1")
	}
	os.Exit(m.Run())
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func newProvider(t *testing.T, change func(*external.Config)) *external.Provider {
	t.Helper()
	config := external.Config{
		Secrets: func(context.Context, string) ([]string, error) { return []string{secret}, nil },
		Allow:   []string{"127.0.0.1"},
	}
	if change != nil {
		change(&config)
	}
	p, err := external.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// owner drives a run, as an executor would.
type owner struct {
	t        *testing.T
	provider *external.Provider
	run      provider.Run
	input    string
	attempt  int
	refs     int
	setRef   error // the store's result for SetRef
}

func begin(t *testing.T, p *external.Provider, input string) *owner {
	t.Helper()
	return &owner{t: t, provider: p, input: input, run: provider.Run{
		Account: "acme", ID: "run_1", StateKey: "refund-17", Graph: "request", State: memory.New(),
	}}
}

func (o *owner) SetRef(_ context.Context, ref string) error {
	o.refs++
	if o.setRef == nil {
		o.run.Ref = ref
	}
	return o.setRef
}

func (o *owner) Ledger() fermata.Ledger { return nil }

func (o *owner) execute(answers ...provider.Answer) (provider.Result, error) {
	return o.provider.Execute(o.t.Context(), provider.Execution{
		Run: o.run, Input: json.RawMessage(o.input), Answers: answers, Attempt: o.attempt, Owner: o,
	})
}

// asks starts the run, which must wait for one interrupt.
func (o *owner) asks() provider.Interrupt {
	o.t.Helper()
	result, err := o.execute()
	if err != nil {
		o.t.Fatal(err)
	}
	waiting, ok := result.Outcome.(provider.Waiting)
	if !ok || len(waiting.Interrupts) != 1 {
		o.t.Fatalf("it does not ask: %#v", result.Outcome)
	}
	return waiting.Interrupts[0]
}

// decidedAt has the time zone of the process that read it from a store.
var decidedAt = time.Date(2026, 8, 21, 12, 0, 0, 0, time.FixedZone("CEST", 2*3600))

func says(q provider.Interrupt, answer string) provider.Answer {
	return provider.Answer{InterruptID: q.ID, Data: json.RawMessage(answer), By: "ann", At: decidedAt}
}

func lapses(q provider.Interrupt) provider.Answer {
	return provider.Answer{InterruptID: q.ID, Expired: true, By: "clock", At: decidedAt}
}

// received is a webhook as decoded by its receiver.
type received struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		StateKey  string          `json:"stateKey"`
		Interrupt string          `json:"interrupt"`
		Kind      string          `json:"kind"`
		Answer    json.RawMessage `json:"answer,omitempty"`
		Refusal   *struct {
			Verb   string    `json:"verb"`
			Reason string    `json:"reason"`
			By     string    `json:"by"`
			At     time.Time `json:"at"`
		} `json:"refusal,omitempty"`
		Clarification int       `json:"clarification,omitempty"`
		Text          string    `json:"text,omitempty"`
		Reason        string    `json:"reason,omitempty"`
		By            string    `json:"by,omitempty"`
		At            time.Time `json:"at"`
	} `json:"data"`
}

// receiver is a strict receiver: it accepts only messages that the specification allows, and each
// message once.
type receiver struct {
	*httptest.Server
	t       *testing.T
	secrets []string
	reply   http.HandlerFunc // instead of 204

	mu    sync.Mutex
	tries []string // the ids of received messages
	taken []received
}

func receive(t *testing.T, reply http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{t: t, secrets: []string{secret}, reply: reply}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	id, message, err := r.read(request)
	if err != nil {
		r.t.Error(err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	known := false
	for _, before := range r.tries {
		known = known || before == id
	}
	r.tries = append(r.tries, id)
	if !known {
		r.taken = append(r.taken, message)
	}
	r.mu.Unlock()
	if r.reply != nil {
		r.reply(w, request)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) read(request *http.Request) (id string, message received, err error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "", message, err
	}
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Content-Type"} {
		if len(request.Header[name]) != 1 {
			return "", message, fmt.Errorf("%d headers %s", len(request.Header[name]), name)
		}
	}
	if request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/json" || request.Header.Get("Accept-Encoding") != "" {
		return "", message, fmt.Errorf("a %s with %v", request.Method, request.Header)
	}
	for _, secret := range r.secrets {
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return "", message, err
		}
		if err := hook.Verify(body, request.Header); err != nil {
			return "", message, err
		}
	}
	id = request.Header.Get("webhook-id")
	if strings.Contains(id, ".") {
		return "", message, errors.New("an id with a full stop")
	}
	return id, message, strictjson.Decode(body, &message)
}

// got returns the accepted messages, each once, and the number of calls.
func (r *receiver) got() (taken []received, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, len(r.tries)
}

func asking(url string) string {
	return fmt.Sprintf(`{"kind":"refund","data":{"order":17},"callback":{"url":%q}}`, url)
}

// names is a resolver that knows one host.
func names(t *testing.T, host, address string) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			var length [2]byte
			if _, err := io.ReadFull(server, length[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(server, query); err != nil {
				return
			}
			reply := resolve(query, host, netip.MustParseAddr(address))
			_, _ = server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		}()
		return client, nil
	}}
}

// resolve answers a DNS query (RFC 1035) with one question.
func resolve(query []byte, host string, address netip.Addr) []byte {
	const header = 12
	end := header
	var labels []string
	for query[end] != 0 {
		size := int(query[end])
		labels = append(labels, string(query[end+1:end+1+size]))
		end += 1 + size
	}
	end += 1 + 4
	qtype := binary.BigEndian.Uint16(query[end-4:])
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	wanted := uint16(1)
	if address.Is6() {
		wanted = 28
	}
	switch {
	case strings.Join(labels, ".") != host:
		reply[3] |= 3 // no such name
	case qtype == wanted:
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, byte(wanted), 0, 1, 0, 0, 0, 0, 0, byte(address.BitLen()/8))
		reply = append(reply, address.AsSlice()...)
	}
	return reply
}
