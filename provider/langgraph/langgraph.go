package langgraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// Name is the provider part of a graph id, before the colon.
const Name = "langgraph"

var (
	_ provider.Provider     = (*Provider)(nil)
	_ provider.InputChecker = (*Provider)(nil)
	_ provider.Withdrawer   = (*Provider)(nil)
)

// Config configures the connection to one LangGraph server.
type Config struct {
	// URL is the address of the server, for example "http://127.0.0.1:2024".
	URL string
	// APIKey is sent in the header X-Api-Key; "" sends none.
	APIKey string
	// Assistants are the assistants that can be run. A name is the graph part of a graph id.
	Assistants map[string]Assistant
	// GrantField and ApproverField are the fields of the state of the graphs that record who let a
	// run continue at a breakpoint: "granted" and the name of the person. Nobody else can set them
	// at a breakpoint. Without names nothing is recorded.
	GrantField, ApproverField string
	// Client makes the calls. The default has no timeout, because a run may take hours. It follows
	// no redirects, because the key must not leave the server.
	Client *http.Client
}

// Assistant is an assistant of a LangGraph server.
type Assistant struct {
	// ID is the id of the assistant or of its graph; by default the name in [Config.Assistants].
	ID          string
	Description string
	// Input is the JSON Schema of the input; nil accepts any JSON object.
	Input json.RawMessage
	// Configurable is passed to the graph as config.configurable.
	Configurable map[string]json.RawMessage
}

// Provider runs the assistants of a LangGraph server. It keeps no state of a run in memory.
type Provider struct {
	client     client
	assistants map[string]Assistant

	grantField, approverField string
}

// New creates a provider. It does not connect.
func New(config Config) (*Provider, error) {
	base, err := url.Parse(config.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.User != nil {
		return nil, errors.New("langgraph: Config.URL must be an http or https URL without a query and a user")
	}
	p := &Provider{grantField: config.GrantField, approverField: config.ApproverField, client: client{base: strings.TrimSuffix(config.URL, "/"), apiKey: config.APIKey, http: config.Client}, assistants: make(map[string]Assistant)}
	if p.client.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.ResponseHeaderTimeout = 5 * time.Minute
		p.client.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	for name, a := range config.Assistants {
		if name == "" || strings.ContainsAny(name, ": /") {
			return nil, fmt.Errorf("langgraph: Config.Assistants: invalid name %q", name)
		}
		if a.Input != nil {
			if _, err := schema.Parse(a.Input); err != nil {
				return nil, fmt.Errorf("langgraph: Config.Assistants[%q].Input is not a JSON Schema: %w", name, err)
			}
		}
		if a.ID == "" {
			a.ID = name
		}
		p.assistants[name] = a
	}
	return p, nil
}

// Name returns "langgraph".
func (p *Provider) Name() string { return Name }

// Capabilities says what LangGraph supports. Its nodes act by themselves, so effects are not
// in the ledger, and the executor evaluates the policy.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Parallel: true, PartialResume: true, Edit: true, Cancel: true, Streaming: true, Once: provider.OnceAnswers, Remote: true}
}

// Graphs lists the assistants.
func (p *Provider) Graphs() []provider.Graph {
	var list []provider.Graph
	for _, name := range slices.Sorted(maps.Keys(p.assistants)) {
		a := p.assistants[name]
		list = append(list, provider.Graph{Name: name, Description: a.Description, Input: a.Input})
	}
	return list
}

func (p *Provider) assistant(graph string) (Assistant, error) {
	a, ok := p.assistants[graph]
	if !ok {
		return a, fmt.Errorf("langgraph: there is no assistant %q", graph)
	}
	return a, nil
}

// CheckInput validates the input of a run; see [provider.InputChecker].
func (p *Provider) CheckInput(_ context.Context, _, graph string, input json.RawMessage) error {
	a, err := p.assistant(graph)
	if err != nil {
		return err
	}
	return a.checkInput(input)
}

func (a *Assistant) checkInput(input json.RawMessage) error {
	if _, ok := adoptionOf(input); ok {
		return nil
	}
	if len(input) > limits.MaxDataBytes {
		return &provider.InputError{Code: provider.CodeDataTooLarge, Problem: fmt.Sprintf("it has %d bytes; %d are allowed", len(input), limits.MaxDataBytes)}
	}
	if _, err := strictjson.Members(input); err != nil {
		return &provider.InputError{Code: provider.CodeInvalidInput, Problem: "it is not a JSON object"}
	}
	if schema.CheckData("input", a.Input, input) != nil { // the error text would contain the input
		return &provider.InputError{Code: provider.CodeInvalidInput, Problem: "it does not match the input schema of the assistant"}
	}
	return nil
}

// CheckAnswer validates an answer; see [provider.Provider].
func (p *Provider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	if _, err := p.assistant(run.Graph); err != nil {
		return nil, err
	}
	s, _, err := load(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, q := range s.Open {
		if q.ID != interrupt || q.Answer != nil {
			continue
		}
		checked, err := q.check(answer)
		if err != nil {
			return nil, &fermata.AnswerError{ID: interrupt, Kind: q.Kind, Err: err}
		}
		return checked, nil
	}
	return nil, fmt.Errorf("langgraph: the run has no open interrupt %q", interrupt)
}

// Delete deletes the thread of a run, unless it was adopted.
func (p *Provider) Delete(ctx context.Context, run provider.Run) error {
	if run.Ref == "" {
		return nil
	}
	t, err := p.client.thread(ctx, run.Ref)
	if err == nil && t.Metadata.Fermata == markOwned {
		err = p.client.deleteThread(ctx, run.Ref)
	}
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// NotifyWithdrawn ends the thread of a run that was ended while it waited, so that it cannot
// continue. An adopted thread stays as it is.
func (p *Provider) NotifyWithdrawn(ctx context.Context, run provider.Run, _ provider.Withdrawal) error {
	if run.Ref == "" {
		return nil
	}
	t, err := p.client.thread(ctx, run.Ref)
	if err == nil && t.Metadata.Fermata == markOwned {
		var runs []runInfo
		runs, err = p.client.runs(ctx, run.Ref)
		for _, r := range runs {
			if r.active() {
				err = errors.Join(err, p.client.cancelRun(ctx, run.Ref, r.ID))
			}
		}
		if err == nil && t.Status == "interrupted" {
			err = p.client.updateState(ctx, run.Ref, nil, "__end__")
		}
	}
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}
