package web

import (
	"cmp"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/web/auditlog"
	"github.com/fermata-go/fermata/internal/web/chat"
	"github.com/fermata-go/fermata/internal/web/governance"
	"github.com/fermata-go/fermata/internal/web/inbox"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/reports"
	"github.com/fermata-go/fermata/internal/web/requests"
	"github.com/fermata-go/fermata/internal/web/runs"
	"github.com/fermata-go/fermata/internal/web/settings"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// View renders the requests of one kind. The built-in views are made in the same way.
type View = requests.View

// ViewData is the data of a view's templates.
type ViewData = requests.ViewData

// Config configures the pages.
type Config struct {
	// API is the handler of the JSON API and of sign-in. Pages call it in process, and it serves
	// all paths that are not pages.
	API http.Handler
	// PublicURL is the address of the server in browsers. With https, cookies are for TLS only.
	// Defaults to the address of each request.
	PublicURL string
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

//go:embed static
var staticFiles embed.FS

//go:embed templates
var templateFiles embed.FS

//go:embed views
var viewFiles embed.FS

// Site is the http.Handler of the pages and the API.
type Site struct {
	shell   *page.Shell
	handler http.Handler
}

// New returns the pages in front of an API.
func New(config Config) (*Site, error) { return newSite(config, texts.Languages) }

func newSite(config Config, languages map[string]texts.Translation) (*Site, error) {
	if config.API == nil {
		return nil, errors.New("web: Config.API is missing")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	pages, err := page.New(page.Config{
		API: config.API, TLS: strings.HasPrefix(config.PublicURL, "https:"), Log: cmp.Or(config.Log, slog.Default()), Now: config.Now, Chat: config.Chat, Tour: config.Tour,
		Languages: languages, Static: staticFiles, Templates: templateFiles, Funcs: areaFuncs,
	})
	if err != nil {
		return nil, err
	}
	requests, err := requests.New(pages, viewFiles, config.Views)
	if err != nil {
		return nil, err
	}
	return &Site{shell: pages, handler: pages.Handler(routesOf(requests)...)}, nil
}

// areaFuncs returns the template functions of all areas.
func areaFuncs(texts texts.Translation) template.FuncMap {
	all := make(template.FuncMap)
	for _, area := range []template.FuncMap{requests.Funcs(texts), inbox.Funcs(texts), runs.Funcs(), auditlog.Funcs(), reports.Funcs(), settings.Funcs()} {
		maps.Copy(all, area)
	}
	return all
}

// routesOf lists all pages by area.
func routesOf(r *requests.Pages) []page.Routes {
	return []page.Routes{
		{"GET /{$}": home, "POST /tour/close": page.CloseTour},
		requests.Routes(r), inbox.Routes(r), chat.Routes(), runs.Routes(r), governance.Routes(), auditlog.Routes(), reports.Routes(), settings.Routes(),
	}
}

// ServeHTTP serves a page, or passes the request to the API.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// home leads to the inbox, to the chat, or to the profile of a person who sees neither.
func home(v *page.Visit) (page.Response, error) {
	switch {
	case !v.OnlyChats():
		return page.Redirect{To: "/inbox"}, nil
	case v.Shell.Config.Chat:
		return page.Redirect{To: "/chat"}, nil
	}
	return page.Redirect{To: "/me"}, nil
}
