// Package page renders the pages of all areas: the layout with its navigation, static files, times,
// notes and errors.
//
// A handler gets a [Visit] and returns a [Response]: a [Page], [Fragment], [Redirect], [JSON],
// [CSV] or [Download]. An error of the API becomes the error page of its status.
package page

import (
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// Config configures a shell. All fields are required, except for those that are true or false.
type Config struct {
	// API is the handler of the JSON API and of sign-in. It serves all paths that are not pages.
	API http.Handler
	// TLS reports that browsers use TLS, to this server or to a proxy in front of it.
	TLS bool
	Log *slog.Logger
	Now func() time.Time
	// Chat reports that the server has an assistant, Tour that new users see what to try.
	Chat, Tour bool
	// Languages has the texts by language.
	Languages map[string]texts.Translation
	// Static has the folder static, Templates the folder templates.
	Static, Templates fs.FS
	// Funcs returns the template functions of the areas, in addition to the shared ones.
	Funcs func(texts.Translation) template.FuncMap
}

// Limiter is an API that applies its limits to pages too. Without them rejected answers a request.
type Limiter interface {
	Admit(next http.Handler, rejected func(http.ResponseWriter, *http.Request, *api.Problem)) http.Handler
}

// Shell renders pages: the layout with its navigation, texts, static files and errors. All areas
// share one.
type Shell struct {
	Config Config

	assets    *assets
	templates map[string]map[string]*template.Template // by language and name
	mux       *http.ServeMux
	paths     map[string]bool // paths of GET routes, for the navigation
}

// New parses the templates and loads the static files.
func New(config Config) (*Shell, error) {
	s := &Shell{Config: config, templates: make(map[string]map[string]*template.Template), mux: http.NewServeMux(), paths: make(map[string]bool)}
	var err error
	if s.assets, err = loadAssets(config.Static); err != nil {
		return nil, err
	}
	for language, texts := range config.Languages {
		if s.templates[language], err = s.parseTemplates(texts); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// AddStatic adds a static file, such as the script of a view. Add all files before the first
// request.
func (s *Shell) AddStatic(name string, data []byte) error { return s.assets.add(name, data) }

// StaticURL returns the path of a static file; an error if there is no such file.
func (s *Shell) StaticURL(name string) (string, error) { return s.assets.url(name) }

// middleware recovers from panics. A static file has no deadline, also not that of the previous
// response on its connection.
func (s *Shell) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		defer func() {
			if value := recover(); value != nil {
				if value == http.ErrAbortHandler || r.Context().Err() != nil {
					panic(http.ErrAbortHandler)
				}
				s.Config.Log.Error("page panicked", "path", r.Pattern, "stack", string(debug.Stack()))
				s.writeError(s.newVisit(w, r), ErrInternal)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
