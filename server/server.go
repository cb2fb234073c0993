// Package server is Fermata over HTTP: starting runs, answering them, following them, and the queue of what people are asked.
//
//	s, err := server.New(server.Config{Executor: e, Auth: auth})
//	http.ListenAndServe(addr, s)
//
// JSON in and out, strictly: duplicate or case-variant keys, trailing data and invalid UTF-8 are errors. Errors are RFC 9457 problems with
// a stable code; [Codes] is the table. The OpenAPI 3.1 document is made from this code and served at /openapi.json.
package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Config says what a server serves, and to whom.
type Config struct {
	Executor *executor.Executor
	Auth     Authenticator
	// Limits are what a caller may use; zero values are the defaults.
	Limits Limits
	// Version is told by /healthz and the OpenAPI document.
	Version string
	// Log gets what operators should know; never what runs work on. The default is slog.Default.
	Log *slog.Logger
}

// Server is an http.Handler.
type Server struct {
	config  Config
	api     huma.API
	handler http.Handler
	metrics *metrics
	limits  *limiter
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
	s := &Server{config: config, limits: newLimiter(config.Limits), metrics: newMetrics()}
	mux := http.NewServeMux()
	s.api = humago.New(mux, s.apiConfig())
	s.api.UseMiddleware(s.door)
	s.registerChat()
	s.registerRuns()
	s.registerRequests()
	s.registerGraphs()
	s.registerHealth()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem("not_found", "there is nothing here; see /openapi.json"))
	})
	s.handler = s.frame(mux)
	return s, nil
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

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
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", Description: "An API key, or a session of a person."}}
	return config
}

// unmarshal takes strict JSON only.
func unmarshal(data []byte, v any) error {
	if err := strictjson.Check(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// operation describes a call that some roles may make.
func operation(id, method, path, summary string, roles ...Role) huma.Operation {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Metadata: map[string]any{}}
	if len(roles) > 0 {
		op.Metadata[allowed] = roles
		op.Security = []map[string][]string{{"bearer": {}}}
	}
	return op
}
