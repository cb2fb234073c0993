// Package server serves Fermata over HTTP: start and answer runs, follow their events, and work on
// the queue of requests.
//
//	s, err := server.New(server.Config{Executor: e, Auth: auth})
//	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
//	h.Serve(s.LimitIdleConns(h, listener))
//
// JSON is parsed strictly: duplicate or case-variant keys, trailing data and invalid UTF-8 are
// errors. Errors are RFC 9457 problems with a stable code; see [Codes]. The OpenAPI 3.1 document is
// generated from this code and served at /openapi.json.
//
// Programs authenticate with API keys ([authn.Keys]). People sign in with a browser
// ([authn.SignIn]) at an identity provider ([authn.OIDC]), or on their own machine with a link
// ([Server.DevLink]). See docs/auth.md.
//
// The package sets global options of the huma library, so all servers of a process share them.
package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/logsample"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/conversations"
	"github.com/fermata-go/fermata/internal/server/deliveries"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/metrics"
	"github.com/fermata-go/fermata/internal/server/ops"
	"github.com/fermata-go/fermata/internal/server/people"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/push"
	"github.com/fermata-go/fermata/internal/server/reports"
	"github.com/fermata-go/fermata/internal/server/requests"
	"github.com/fermata-go/fermata/internal/server/rules"
	"github.com/fermata-go/fermata/internal/server/runs"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a server.
type Config struct {
	Executor *executor.Executor
	// Auth authenticates programs, usually by API key.
	Auth authn.Authenticator
	// SignIn lets people sign in with a browser. Without it there are no sessions.
	SignIn *authn.SignIn
	// Dialog holds conversations with end users. Without it there are none.
	Dialog *conversation.Handler
	// Limits bounds what callers may use; zero values mean the defaults.
	Limits Limits
	// TrustedProxies are the proxies whose X-Forwarded-For counts. Defaults to loopback addresses.
	TrustedProxies admission.TrustedProxies
	// Version is reported by /healthz and in the OpenAPI document.
	Version string
	// Log receives messages for operators; never run data. Defaults to slog.Default.
	Log *slog.Logger
	// Tracer, if set, traces requests as part of the callers' traces.
	Tracer trace.Tracer
	// Settings is the effective configuration, for admins. Secrets must be masked.
	Settings []api.Setting
	// Collectors are metrics of other components to export with those of the server.
	Collectors []prometheus.Collector
	// WebPush notifies browsers; nil if people cannot subscribe them.
	WebPush *webpush.Channel
	// PolicyStatus, if set, reports problems of the policy and groups files for the metrics.
	PolicyStatus func() PolicyStatus
}

// Server is an http.Handler.
type Server struct {
	config     Config
	api        huma.API
	handler    http.Handler
	metrics    *metrics.Metrics
	limits     *admission.Limiter
	runs       *runs.Handlers
	visibility visibility.Checker
	sessions   *authn.Sessions // nil: no sessions
	routes     []string
	// heavyReads limits full-history reads: reconciliation, reports and policy replay.
	heavyReads admission.TurnLimiter
	idleConns  admission.IdleConnLimiter
	unverified unverifiedBytes // of channels' requests
	streams    stream.Opener
	// Rate limits for log lines that anonymous clients can cause: authentication errors and evicted
	// connections.
	authLog, evictionLog logsample.Sampler
	// operationLogs rate-limits messages about failed calls by operation, so that one does not hide
	// another.
	operationLogs sync.Map
}

// New returns a server. It returns an error if the configuration is invalid.
func New(config Config) (*Server, error) {
	switch {
	case config.Executor == nil:
		return nil, errors.New("server: Config.Executor is missing")
	case config.Auth == nil:
		return nil, errors.New("server: Config.Auth is missing")
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	config.Version = cmp.Or(config.Version, "dev")
	config.Limits = config.Limits.withDefaults()
	if config.TrustedProxies == nil {
		config.TrustedProxies = admission.Loopback()
	}
	s := &Server{config: config, visibility: visibility.Checker{Executor: config.Executor}, limits: admission.NewLimiter(config.Limits.limiter(), (&admission.StoreProbe{Check: config.Executor.Ready}).OK)}
	s.streams = stream.Opener{
		WriteTimeout: config.Limits.WriteTimeout, Heartbeat: config.Limits.Heartbeat, Recheck: config.Limits.AuthRecheck, Authorized: s.stillAuthorized,
	}
	s.idleConns.Configure(config.Limits.IdleConns, s.connEvicted)
	s.metrics = metrics.New(&s.limits.Scheduler, &s.idleConns)
	if err := s.setUpSignIn(); err != nil {
		return nil, err
	}
	if err := s.registerMetrics(); err != nil {
		return nil, err
	}
	mux := &routeTable{ServeMux: http.NewServeMux()}
	s.api = humago.New(mux, s.apiConfig())
	s.api.UseMiddleware(s.requireRole, s.requireVisible)
	s.registerOperations()
	if s.sessions != nil {
		s.sessions.Register(mux.HandleFunc)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(mux.ServeMux, w, r) })
	s.addProblemCodes()
	s.handler, s.routes = s.middleware(s.renew(s.traced(mux))), mux.patterns
	return s, nil
}

// registerOperations adds the operations of the API. Each package of handlers has its dependencies
// in a struct.
func (s *Server) registerOperations() {
	c := s.config
	s.runs = &runs.Handlers{Executor: c.Executor, Visibility: s.visibility, Streams: &s.streams, Limits: c.Limits.starts(), Log: c.Log, Failed: s.logProblem}
	s.runs.Register(s.api)
	(&requests.Handlers{Executor: c.Executor, Visibility: s.visibility, Streams: &s.streams}).Register(s.api)
	(&rules.Handlers{Executor: c.Executor, Visibility: s.visibility, HeavyRead: s.heavyRead}).Register(s.api)
	(&reports.Handlers{Executor: c.Executor, HeavyRead: s.heavyRead}).Register(s.api)
	(&ops.Handlers{Ready: c.Executor.Ready, Version: c.Version, Settings: c.Settings, Log: c.Log}).Register(s.api)
	(&people.Handlers{Executor: c.Executor, Sessions: s.sessions}).Register(s.api)
	(&deliveries.Handlers{Executor: c.Executor, Visibility: s.visibility}).Register(s.api)
	(&conversations.Handlers{
		Dialog: c.Dialog, Messages: admission.NewBuckets(c.Limits.MessageRate, c.Limits.MessageBurst), Streams: &s.streams, Done: c.Executor.Done(), Failed: s.logProblem,
		UserMessages: admission.NewBuckets(5*c.Limits.MessageRate, 5*c.Limits.MessageBurst), TakeStart: s.runs.TakeStart, Tokens: s.runs.Tokens,
	}).Register(s.api)
	(&push.Handlers{Executor: c.Executor, Channel: c.WebPush}).Register(s.api)
}

// registerMetrics adds the metrics of other components.
func (s *Server) registerMetrics() error {
	store := metrics.NewStore(s.config.Executor.Overview, func(err error) {
		s.metrics.CountError("store_metrics")
		s.config.Log.Error("reading store metrics failed", "err", err)
	})
	own := []prometheus.Collector{metrics.Executor{Executor: s.config.Executor}, store, metrics.NewChannels(s.config.Executor.Stats, store), metrics.Policy(s.config.PolicyStatus)}
	return s.metrics.Register(slices.Concat(s.config.Collectors, own)...)
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if admission.TrackedConnFrom(r.Context()).Alive() {
		s.handler.ServeHTTP(w, r)
	}
}

// OpenAPI returns the OpenAPI document.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

func init() {
	// Both are global in the library. No other package of this program uses it.
	huma.NewError = problems.FromRouter
	huma.ValidateStrictCasing = true
}

func (s *Server) apiConfig() huma.Config {
	config := huma.DefaultConfig("Fermata", s.config.Version)
	config.Info.Description = "Lets agents and workflows wait for a person and continue exactly where they stopped."
	config.DocsPath, config.SchemasPath = "", ""
	config.CreateHooks = nil // no $schema in responses
	config.Components.Schemas = huma.NewMapRegistry(endpoint.ComponentPrefix, schemaName)
	config.RejectUnknownQueryParameters = true
	config.Formats = map[string]huma.Format{"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}, "json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}}
	config.Transformers = []huma.Transformer{s.countProblem}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer":  {Type: "http", Scheme: "bearer", Description: "An API key, or a token that the identity provider issued for this API."},
		"session": {Type: "apiKey", In: "cookie", Name: authn.SessionCookie, Description: "The session of a person who signed in with a browser."},
	}
	return config
}

// schemaName returns the name of a type in the OpenAPI document. Package dialog has short names.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == reflect.TypeFor[dialog.Record]().PkgPath() {
		return "Conversation" + name
	}
	return name
}

// notFound answers requests for unknown paths and methods.
func notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allow []string
	for method := range metrics.Methods {
		probe := *r
		probe.Method = method
		if _, pattern := mux.Handler(&probe); pattern != "" && pattern != "/" {
			allow = append(allow, method)
		}
	}
	if allow == nil {
		problems.Write(w, problems.New("not_found", "no such path; see /openapi.json"))
		return
	}
	slices.Sort(allow)
	w.Header().Set("Allow", strings.Join(allow, ", "))
	problems.Write(w, problems.New("method_not_allowed", "allowed methods: %s", strings.Join(allow, ", ")))
}

// addProblemCodes lists the problem codes in the document.
func (s *Server) addProblemCodes() {
	code := s.api.OpenAPI().Components.Schemas.Map()["Problem"].Properties["code"]
	for _, c := range Codes {
		code.Enum = append(code.Enum, c.Code)
	}
}

// unmarshal accepts strict JSON only.
func unmarshal(data []byte, v any) error {
	if err := strictjson.Check(data); err != nil {
		return err
	}
	err := json.Unmarshal(data, v)
	// only the syntax is checked here: the text is kept as it is, with numbers of any size
	if _, ok := v.(*any); ok {
		if _, large := errors.AsType[*json.UnmarshalTypeError](err); large {
			return nil
		}
	}
	return err
}

// countProblem sees every response of the operations and counts problems.
func (s *Server) countProblem(ctx huma.Context, _ string, answer any) (any, error) {
	if p, ok := answer.(*problems.Problem); ok && !p.Rejected {
		s.metrics.CountProblem(p.Code)
		s.metrics.CountLimited(p.Limit)
		s.logProblem(p, ctx.Operation().OperationID)
	}
	return answer, nil
}

// logProblem logs the cause of a failed call, which clients do not see. It contains no run data:
// provider errors stay in the executor.
func (s *Server) logProblem(p *problems.Problem, operation string) {
	if p.Cause != nil {
		s.metrics.CountError("operation")
		// the panic value may contain anything
		if panicErr, ok := errors.AsType[*recovery.PanicError](p.Cause); ok {
			s.config.Log.Error("code panicked", "operation", operation, "type", fmt.Sprintf("%T", panicErr.Value), "stack", string(panicErr.Stack))
			return
		}
		lines, _ := s.operationLogs.LoadOrStore(operation, new(logsample.Sampler))
		// a full disk fails every request, and the log may be on the same disk
		if left, ok := lines.(*logsample.Sampler).Allow(); ok {
			s.config.Log.Error("request failed", "operation", operation, "err", p.Cause, "suppressed", left)
		}
	}
}

// setUpSignIn prepares browser sign-in.
func (s *Server) setUpSignIn() error {
	if s.config.SignIn == nil {
		return nil
	}
	signIn := *s.config.SignIn
	if signIn.Passkeys == nil {
		signIn.Passkeys = s.config.Executor
	}
	sessions, err := authn.New(signIn, authn.Hooks{
		Log: s.config.Log, Rejected: s.metrics.CountRejected,
		Failed: func(component string) { s.metrics.CountError(component) }, Source: s.config.TrustedProxies.Source,
	})
	if err != nil {
		return err
	}
	s.sessions, s.config.Auth = sessions, sessions.Identifier(s.config.Auth)
	return nil
}

// DevLink returns a link that signs in its first visitor as who; see [authn.Sessions.DevLink].
func (s *Server) DevLink(listener net.Addr, who authn.Principal, path string) (string, error) {
	if s.sessions == nil {
		return "", errors.New("server: Config.SignIn is missing")
	}
	return s.sessions.DevLink(listener, who, path)
}

// renew keeps an active session from timing out.
func (s *Server) renew(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.sessions != nil {
			s.sessions.Renew(w, r, endpoint.Principal(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// PolicyStatus reports problems of the policy and groups files. The policy in force still applies.
type PolicyStatus = metrics.PolicyStatus

// Metrics returns a handler that serves the metrics in Prometheus' format.
func (s *Server) Metrics() http.Handler { return s.metrics.Handler() }
