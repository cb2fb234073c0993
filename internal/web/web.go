package web

import (
	"cmp"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// Config configures the pages.
type Config struct {
	// API is the handler of the JSON API and of sign-in. Pages call it in process, and it serves
	// all paths that are not pages.
	API http.Handler
	// Views are the views of request kinds, in addition to the built-in ones. A view for a
	// built-in kind replaces it.
	Views []View
	// Log receives messages for operators; never run data. Defaults to slog.Default.
	Log *slog.Logger
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Chat adds the page on which users talk to the assistant of the server.
	Chat bool
	// Tour shows new users what to try. It is for the demo.
	Tour bool
}

// Site is the http.Handler of the pages and the API.
type Site struct {
	config    Config
	texts     translation
	assets    *assets
	templates map[string]*template.Template
	views     map[string]*kindView
	mux       *http.ServeMux
	handler   http.Handler
	paths     map[string]bool // paths of GET routes, for the navigation
}

// New returns the pages in front of an API.
func New(config Config) (*Site, error) { return newSite(config, english) }

func newSite(config Config, texts translation) (*Site, error) {
	if config.API == nil {
		return nil, errors.New("web: Config.API is missing")
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Site{config: config, texts: texts, mux: http.NewServeMux(), paths: make(map[string]bool)}
	var err error
	if s.assets, err = loadAssets(staticFiles); err != nil {
		return nil, err
	}
	if s.templates, err = s.parseTemplates(); err != nil {
		return nil, err
	}
	if s.views, err = s.parseViews(config.Views); err != nil {
		return nil, err
	}
	s.addRoutes()
	s.handler = s.middleware(s.mux)
	return s, nil
}

// ServeHTTP serves a page, or passes the request to the API.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// middleware recovers from panics.
func (s *Site) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if value := recover(); value != nil {
				if value == http.ErrAbortHandler || r.Context().Err() != nil {
					panic(http.ErrAbortHandler)
				}
				s.config.Log.Error("page panicked", "path", r.Pattern, "stack", string(debug.Stack()))
				s.writeError(s.newVisit(w, r), errInternal)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
