// Package server is Fermata over HTTP: starting runs, answering them, following them, and the queue of what people are asked.
//
//	s, err := server.New(server.Config{Executor: e, Auth: auth})
//	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
//	h.Serve(s.Guard(h, listener))
//
// JSON in and out, strictly: duplicate or case-variant keys, trailing data and invalid UTF-8 are errors. Errors are RFC 9457 problems with
// a stable code; [Codes] is the table. The OpenAPI 3.1 document is made from this code and served at /openapi.json.
//
// Programs are known by API keys ([Keys]); people sign in with a browser ([SignIn]) at an identity provider ([OIDC]), or on their own machine by a
// link ([Server.DevLink]). docs/auth.md has the whole of it.
package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/logsample"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Config says what a server serves, and to whom.
type Config struct {
	Executor *executor.Executor
	// Auth knows programs, mostly by their keys.
	Auth Authenticator
	// SignIn lets people in with a browser. Without it there are no sessions.
	SignIn *SignIn
	// Limits are what a caller may use; zero values are the defaults.
	Limits Limits
	// Version is told by /healthz and the OpenAPI document.
	Version string
	// Log gets what operators should know; never what runs work on. The default is slog.Default.
	Log *slog.Logger
	// Tracer, if given, draws requests, as parts of the callers' traces.
	Tracer trace.Tracer
	// Collectors are metrics of other parts of the program, to be shown with those of the server.
	Collectors []prometheus.Collector
	// Rules, if given, says what is wrong with the files of rules and groups, for the metrics.
	PolicyStatus func() PolicyStatus
}

// Server is an http.Handler.
type Server struct {
	config   Config
	api      huma.API
	handler  http.Handler
	metrics  *metrics
	limits   *limiter
	quotas   quotaCache
	sessions *sessionManager // nil: there are no sessions
	routes   []string
	// reading are the turns of accounts that have their whole past read: books compared, a report made, the past judged by other rules.
	heavyReads heavyReadLimiter
	idleConns  idleConnLimiter
	unreadyLog interval // in the log
	// Lines that strangers can cause: sign-ins that are refused, those that fail, callers of whom nobody can say who they are, and connections of those who say nothing.
	rejectionLog, failureLog, authLog, evictionLog logsample.Sampler
	// unserved are those of calls that could not be served, by operation: none hides what happens to another.
	operationLogs sync.Map
}

// New makes a server.
func New(config Config) (*Server, error) {
	switch {
	case config.Executor == nil:
		return nil, errors.New("server: Config.Executor is missing")
	case config.Auth == nil:
		return nil, errors.New("server: Config.Auth is missing: who may call?")
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	config.Version = cmp.Or(config.Version, "dev")
	config.Limits = config.Limits.withDefaults()
	s := &Server{config: config, limits: newLimiter(config.Limits, (&storeProbe{check: config.Executor.Ready}).ok)}
	s.idleConns.configure(config.Limits.IdleConns, s.connEvicted)
	s.metrics = newMetrics(&s.limits.scheduler, &s.idleConns)
	if err := s.setUpSignIn(); err != nil {
		return nil, err
	}
	store := &storeCollector{read: config.Executor.Overview, now: time.Now, onError: func(err error) {
		s.metrics.errors.WithLabelValues("overview").Inc()
		config.Log.Error("the metrics of the store are missing", "err", err)
	}}
	for _, c := range slices.Concat(config.Collectors, []prometheus.Collector{executorCollector{config.Executor}, store, policyStatusCollector(config.PolicyStatus)}) {
		if err := s.metrics.registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := &routeTable{ServeMux: http.NewServeMux()}
	s.api = humago.New(mux, s.apiConfig())
	s.api.UseMiddleware(s.requireRole)
	s.registerChat()
	s.registerRuns()
	s.registerRequests()
	s.registerRequestActions()
	s.registerGrants()
	s.registerAudit()
	s.registerGraphs()
	s.registerHealth()
	s.registerSignIn(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(mux.ServeMux, w, r) })
	s.addProblemCodes()
	s.handler, s.routes = s.middleware(s.renew(s.traced(mux))), mux.patterns
	return s, nil
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if trackedConnFrom(r.Context()).alive() {
		s.handler.ServeHTTP(w, r)
	}
}

// OpenAPI is the document that describes the API.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

func init() {
	// Both belong to the library as a whole. Nobody else in this program uses it.
	huma.NewError = newError
	huma.ValidateStrictCasing = true
}

func (s *Server) apiConfig() huma.Config {
	config := huma.DefaultConfig("Fermata", s.config.Version)
	config.Info.Description = "Lets agents and workflows stop for a person, and go on exactly where they stopped."
	config.DocsPath, config.SchemasPath = "", ""
	config.CreateHooks = nil // no $schema in answers
	config.RejectUnknownQueryParameters = true
	config.Formats = map[string]huma.Format{"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}, "json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}}
	config.Transformers = []huma.Transformer{s.countProblem}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer":  {Type: "http", Scheme: "bearer", Description: "An API key, or a token that the identity provider made for this API."},
		"session": {Type: "apiKey", In: "cookie", Name: hostPrefix + sessionCookie, Description: "The session of a person who signed in with a browser."},
	}
	return config
}

// notFound answers where there is nothing, or nothing of that method.
func notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allow []string
	for method := range methods {
		probe := *r
		probe.Method = method
		if _, pattern := mux.Handler(&probe); pattern != "" && pattern != "/" {
			allow = append(allow, method)
		}
	}
	if allow == nil {
		writeProblem(w, problem("not_found", "there is nothing here; see /openapi.json"))
		return
	}
	slices.Sort(allow)
	w.Header().Set("Allow", strings.Join(allow, ", "))
	writeProblem(w, problem("method_not_allowed", "this takes %s", strings.Join(allow, ", ")))
}

// nameCodes lists the codes of problems in the document.
func (s *Server) addProblemCodes() {
	code := s.api.OpenAPI().Components.Schemas.Map()["Problem"].Properties["code"]
	for _, c := range Codes {
		code.Enum = append(code.Enum, c.Code)
	}
}

// unmarshal takes strict JSON only.
func unmarshal(data []byte, v any) error {
	if err := strictjson.Check(data); err != nil {
		return err
	}
	err := json.Unmarshal(data, v)
	if _, ok := v.(*any); ok { // for a look at its form: what is kept is the text, in which a number may have any size
		if _, large := errors.AsType[*json.UnmarshalTypeError](err); large {
			return nil
		}
	}
	return err
}

// count sees every answer of the operations on its way out, and counts the problems among them.
func (s *Server) countProblem(ctx huma.Context, _ string, answer any) (any, error) {
	if p, ok := answer.(*Problem); ok && !p.rejected {
		s.metrics.problems.WithLabelValues(p.Code).Inc()
		s.metrics.countLimited(p.limit)
		s.logProblem(p, ctx.Operation().OperationID)
	}
	return answer, nil
}

// report tells operators why nobody could be served, which callers are not told. What a run works on is not in it: what providers say stays in the executor.
func (s *Server) logProblem(p *Problem, operation string) {
	if p.cause != nil {
		s.metrics.errors.WithLabelValues("operation").Inc()
		if broken, ok := errors.AsType[*recovery.PanicError](p.cause); ok { // its value may hold anything
			s.config.Log.Error("code panicked", "operation", operation, "type", fmt.Sprintf("%T", broken.Value), "stack", string(broken.Stack))
			return
		}
		lines, _ := s.operationLogs.LoadOrStore(operation, new(logsample.Sampler))
		if left, ok := lines.(*logsample.Sampler).Allow(); ok { // a store that is full is so for everybody who comes, and the log may be on the same disk
			s.config.Log.Error("a request could not be served", "operation", operation, "err", p.cause, "leftOut", left)
		}
	}
}

// operation describes a call that some roles may make.
func operation(id, method, path, summary string, roles ...Role) huma.Operation {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Metadata: map[string]any{}}
	if len(roles) > 0 {
		op.Metadata[rolesMetadata] = roles
		op.Security = []map[string][]string{{"bearer": {}}, {"session": {}}}
	}
	return op
}
