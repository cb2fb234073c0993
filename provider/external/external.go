package external

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Name is the provider part of a graph id, before the colon.
const Name = "external"

// graphName is the only graph: one request.
const graphName = "request"

var (
	_ provider.Provider     = (*Provider)(nil)
	_ provider.Explainer    = (*Provider)(nil)
	_ provider.Withdrawer   = (*Provider)(nil)
	_ provider.InputChecker = (*Provider)(nil)
	_ origin.Reader         = (*Provider)(nil)
)

// Config configures the delivery of answers. With the zero value agents must poll.
type Config struct {
	// Secrets returns the signing secrets for the webhooks of an account, newest first; several
	// during a rotation. [NewSecret] creates one. Without secrets, requests of the account cannot
	// have a callback.
	Secrets func(ctx context.Context, account string) ([]string, error)

	// Allow lists host names, addresses and prefixes, for example "receiver.internal" and
	// "10.1.0.0/16", that may be called although they are not public, at any port and without TLS.
	// Everyone who can start a run can call these hosts.
	Allow []string

	// Roots are the certificate authorities for receivers. The default is those of the system.
	Roots *x509.CertPool

	// Resolver resolves host names. The default is that of the system.
	Resolver *net.Resolver
}

// Provider keeps requests open for agents that run elsewhere, and delivers the answers. It keeps no
// state of a run in memory.
type Provider struct {
	secrets func(ctx context.Context, account string) ([]string, error)
	client  *outbound.Client
	timeout time.Duration // for a receiver

	mu       sync.Mutex
	inFlight map[string]int // number of deliveries in progress by account
}

// New creates a provider.
func New(config Config) (*Provider, error) {
	client, err := outbound.NewClient(outbound.Config{Allow: config.Allow, Roots: config.Roots, Resolver: config.Resolver})
	if err != nil {
		return nil, fmt.Errorf("external: Config.Allow: %w", err)
	}
	return &Provider{secrets: config.Secrets, client: client, timeout: totalTimeout, inFlight: make(map[string]int)}, nil
}

// Name returns "external".
func (p *Provider) Name() string { return Name }

// Capabilities says what an external agent can do: a request is one interrupt, and the agent
// handles everything after the answer.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Edit: true, Cancel: true, Receipts: true, Once: provider.OnceNone, Remote: true}
}

// Graphs lists the one graph.
func (p *Provider) Graphs() []provider.Graph {
	return []provider.Graph{{
		Name: graphName, Description: "Asks people on behalf of an agent that runs elsewhere, and delivers the answer.", Input: schema.TextFor[request](),
	}}
}

func checkGraph(graph string) error {
	if graph != graphName {
		return fmt.Errorf("external: there is no graph %q", graph)
	}
	return nil
}

// Execute registers the request, or delivers the answer to the agent; see [provider.Provider].
func (p *Provider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	if err := checkGraph(e.Run.Graph); err != nil {
		return provider.Result{}, err
	}
	for _, answer := range e.Answers {
		if answer.InterruptID == questionID(e.Run) {
			return p.deliverAnswer(ctx, e, answer)
		}
	}
	req, err := p.register(ctx, e)
	if wrong, ok := errors.AsType[*InputError](err); ok {
		return provider.Result{Outcome: provider.Failed{Code: "invalid_input", Message: wrong.Error(), Final: true}}, nil
	}
	if err != nil {
		return provider.Result{}, err
	}
	return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{req.question(e.Run)}}}, nil
}

// register stores the request once. Later versions of this program do not reinterpret the input.
func (p *Provider) register(ctx context.Context, e provider.Execution) (request, error) {
	req, err := loadRequest(ctx, e.Run)
	if !errors.Is(err, store.ErrNotFound) {
		return req, err
	}
	if req, err = decodeRequest(e.Input); err != nil {
		return req, err
	}
	if err = p.check(ctx, e.Run.Account, &req); err != nil {
		return req, err
	}
	if e.Run.Ref == "" {
		if err := e.Owner.SetRef(ctx, ident.Random("ext")); err != nil {
			return req, err
		}
	}
	req.Callback = nil // it is needed once, and the input contains it
	data, err := json.Marshal(req)
	if err != nil {
		return req, err
	}
	_, err = e.Run.State.Save(ctx, key(e.Run), 0, store.Delta{Put: []store.Part{{Name: partRequest, Data: data}}})
	return req, err
}

// partRequest is the part of the run's state that contains the request.
const partRequest = "request"

func key(run provider.Run) store.Key { return store.Key{Account: run.Account, Run: run.ID} }

// loadRequest returns the registered request, or store.ErrNotFound.
func loadRequest(ctx context.Context, run provider.Run) (request, error) {
	var req request
	checkpoint, err := run.State.Load(ctx, key(run))
	if err != nil {
		return req, err
	}
	if err := json.Unmarshal(checkpoint.Parts[partRequest], &req); err != nil {
		return req, errors.New("external: the state of the run does not belong to this provider")
	}
	return req, nil
}

// questionID returns the interrupt id of a run. It is always the same for one run.
func questionID(run provider.Run) string {
	return ident.Derive("int", run.Account, run.ID, Name)
}

func (r *request) question(run provider.Run) provider.Interrupt {
	return provider.Interrupt{
		ID: questionID(run), Address: fermata.Address{{Type: fermata.SegmentRunnable, ID: graphName}},
		Envelope: fermata.Envelope{Kind: r.Kind, Data: r.Data}, AnswerSchema: r.AnswerSchema, DefaultAnswer: r.DefaultAnswer, Timeout: time.Duration(r.Timeout) * time.Second,
	}
}

// deliverAnswer delivers the answer to the agent if it has a callback, and ends the run.
func (p *Provider) deliverAnswer(ctx context.Context, e provider.Execution, answer provider.Answer) (provider.Result, error) {
	req, err := decodeRequest(e.Input)
	refused := answer.Refusal != nil && req.Kind != fermata.Approval.Name()
	if err == nil && answer.Refusal != nil && !refused { // the answer to an approval is a decision
		answer.Data, err = json.Marshal(answer.Refusal.Decision)
	}
	if err != nil {
		return provider.Result{}, err
	}
	if req.Callback != nil {
		if err := p.deliver(ctx, e, req, answer); err != nil {
			return provider.Result{}, err
		}
	}
	result := provider.Result{Applied: []string{answer.InterruptID}}
	if answer.Expired {
		result.Outcome = provider.Failed{Code: "expired", Message: "the request expired", Final: true}
		return result, nil
	}
	if refused {
		result.Outcome = provider.Failed{Code: refusalCode(answer.Refusal.Verb), Message: answer.Refusal.Err(req.Kind).Error(), Final: true}
		return result, nil
	}
	output, err := json.Marshal(struct {
		Kind   string          `json:"kind"`
		Answer json.RawMessage `json:"answer"`
		By     string          `json:"by,omitempty"`
		At     time.Time       `json:"at,omitzero"`
		Auth   string          `json:"auth,omitempty"`
		Rule   string          `json:"rule,omitempty"`
		// ApprovedDigest is the digest of the approved action with its arguments.
		ApprovedDigest string `json:"approvedDigest,omitempty"`
	}{req.Kind, answer.Data, answer.By, answer.At.UTC(), answer.Auth, answer.Rule, req.approvedDigest(answer.Data)})
	result.Outcome = provider.Completed{Output: output, FinishReason: "answered"}
	return result, err
}

// refusalCode returns the code of a run whose request was returned or rejected.
func refusalCode(verb fermata.Verb) string {
	if verb == fermata.VerbReturn {
		return "returned"
	}
	return "rejected"
}

// CheckAnswer validates an answer; see [provider.Provider].
func (p *Provider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	if err := checkGraph(run.Graph); err != nil {
		return nil, err
	}
	req, err := loadRequest(ctx, run)
	if err != nil {
		return nil, err
	}
	if interrupt != questionID(run) {
		return nil, fmt.Errorf("external: the run has no interrupt %q", interrupt)
	}
	checked, err := req.fits(answer)
	if err != nil {
		if unfit, ok := errors.AsType[*fermata.AnswerError](err); ok {
			err = unfit.Err
		}
		return nil, &fermata.AnswerError{ID: interrupt, Kind: req.Kind, Err: err}
	}
	return checked, nil
}

// Delete does nothing: all data of a run is in its state, which the executor deletes.
func (p *Provider) Delete(context.Context, provider.Run) error { return nil }
