package page

import (
	"net/http"
	"strings"

	"github.com/fermata-go/fermata/api"
)

// Routes are the handlers of an area by their patterns, in the form of http.ServeMux.
type Routes map[string]Handler

// Handler returns the handler of the pages of all areas, static files, and the API for all other
// paths. A shell has one handler.
func (s *Shell) Handler(areas ...Routes) http.Handler {
	for _, routes := range areas {
		for pattern, handle := range routes {
			s.mux.Handle(pattern, crossOrigin.Handler(s.limited(s.serve(handle))))
			if path, ok := strings.CutPrefix(pattern, "GET "); ok {
				s.paths[path] = true
			}
		}
	}
	s.mux.Handle("GET "+s.assets.prefix, s.assets)
	s.mux.HandleFunc("GET /manifest.webmanifest", s.manifest)
	s.mux.HandleFunc("GET "+WorkerPath, s.pushWorker)
	s.mux.HandleFunc("/", s.serveAPI)
	return s.middleware(s.mux)
}

// crossOrigin rejects forms that were sent by pages of other sites.
var crossOrigin = http.NewCrossOriginProtection()

// limited applies the limits of the API to a page.
func (s *Shell) limited(next http.Handler) http.Handler {
	limiter, ok := s.Config.API.(Limiter)
	if !ok {
		return next
	}
	return limiter.Admit(next, func(w http.ResponseWriter, r *http.Request, p *api.Problem) {
		r.Body = http.NoBody // reading it would cost more than the rejection
		s.writeError(s.newVisit(w, r), p)
	})
}

// serve calls a handler for a signed-in person and writes its response.
func (s *Shell) serve(handle Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.newVisit(w, r)
		answer, err := s.respond(v, handle)
		if err == nil {
			err = answer.Write(v)
		}
		if err != nil {
			s.writeError(v, err)
		}
	})
}

// respond reads the form of a person with a session only. The form of a person whose session has
// ended is kept if it is small.
func (s *Shell) respond(v *Visit, handle Handler) (Response, error) {
	var err error
	if v.Me, err = v.API.Me(v.Context()); err != nil {
		if v.ContentLength >= 0 && v.ContentLength <= maxKept {
			_ = v.ParseForm() // the page shows what was read
		}
		return nil, err
	}
	if err := v.ParseForm(); err != nil {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.T("error.form")}
	}
	return handle(v)
}

// serveAPI passes a request to the API. A browser gets a page instead of a problem if it looks for
// a page that does not exist.
func (s *Shell) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") || strings.HasPrefix(r.URL.Path, "/api/") {
		s.Config.API.ServeHTTP(w, r)
		return
	}
	s.Config.API.ServeHTTP(&notFoundWriter{ResponseWriter: w, page: func() {
		v := s.newVisit(w, r)
		v.Me, _ = v.API.Me(v.Context()) // only for the navigation
		s.writeError(v, ErrNotFound)
	}}, r)
}

// notFoundWriter replaces a problem with status 404 by a page.
type notFoundWriter struct {
	http.ResponseWriter
	page     func()
	replaced bool
}

func (w *notFoundWriter) WriteHeader(status int) {
	if status == http.StatusNotFound && strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") {
		w.replaced = true
		w.page()
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *notFoundWriter) Write(data []byte) (int, error) {
	if w.replaced {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap supports http.ResponseController.
func (w *notFoundWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
