package web

import (
	"net/http"
	"strings"

	"github.com/fermata-go/fermata/api"
)

// route is a path with its handler, in the form of http.ServeMux.
type route struct {
	pattern string
	handle  handler
}

// routes lists all pages. Keep the entries of a page together.
var routes = []route{
	{"GET /{$}", (*Site).home},
	// inbox.go, request.go and their actions
	{"GET /inbox", (*Site).inbox},
	{"GET /inbox/rows/{id}", (*Site).inboxRow},
	{"GET /inbox/count", (*Site).inboxCount},
	{"GET /inbox/views", (*Site).savedViews},
	{"POST /inbox/views", (*Site).saveView},
	{"POST /inbox/views/{id}", (*Site).saveView},
	{"POST /inbox/views/{id}/delete", (*Site).deleteView},
	{"GET /batch", (*Site).batch},
	{"POST /batch", (*Site).decideBatch},
	{"GET /requests/{id}", (*Site).request},
	{"POST /requests/{id}/viewed", (*Site).viewed},
	{"GET /requests/{id}/{act}", (*Site).showAction},
	{"POST /requests/{id}/{act}", (*Site).takeAction},
	// chat.go
	{"GET /chat", (*Site).chats},
	{"POST /chat", (*Site).startChat},
	{"GET /chat/{id}", (*Site).chat},
	{"POST /chat/{id}", (*Site).sendChat},

	// runs.go
	{"GET /runs", (*Site).runs},
	{"GET /runs/{key}", (*Site).run},
	{"POST /runs/{key}/cancel", (*Site).cancelRun},
	{"POST /runs/{key}/retry", (*Site).retryRun},

	// graphs.go
	{"GET /graphs", (*Site).graphs},
	{"GET /graphs/{id}", (*Site).graph},
	{"POST /graphs/{id}/start", (*Site).startRun},

	// policies.go
	{"GET /policies", (*Site).policies},
	{"POST /policies/explain", (*Site).explainPolicy},
	{"POST /policies/replay", (*Site).replayPolicy},

	// routes_page.go
	{"GET /routes", (*Site).routesPage},

	// grants.go
	{"GET /grants", (*Site).grants},
	{"POST /grants/{id}/revoke", (*Site).revokeGrant},

	// audit.go
	{"GET /audit", (*Site).audit},
	{"GET /audit/export", (*Site).auditExport},
	{"GET /audit/records/{seq}/proof", (*Site).auditProof},
	{"GET /audit/decisions", (*Site).auditDecisions},
	{"GET /audit/requests/{id}", (*Site).auditEvidence},

	// analytics.go
	{"GET /analytics", (*Site).analyticsPage},

	// deliveries.go
	{"GET /deliveries", (*Site).deliveries},
	{"POST /deliveries/again", (*Site).sendAgain},

	// me.go and links.go
	{"GET /me", (*Site).me},
	{"POST /me/notifications", (*Site).saveNotifications},
	{"POST /me/passkeys", (*Site).addPasskey},
	{"POST /me/passkeys/options", (*Site).passkeyOptions},
	{"POST /me/passkeys/{id}/rename", (*Site).renamePasskey},
	{"POST /me/passkeys/{id}/remove", (*Site).removePasskey},
	{"POST /me/unlink", (*Site).unlink},
	{"POST /me/browsers", (*Site).addBrowser},
	{"POST /me/browsers/{id}/remove", (*Site).removeBrowser},
	{"GET /link/{token}", (*Site).showLink},
	{"POST /link/{token}", (*Site).useLink},

	{"POST /me/sessions/{id}/end", (*Site).endMySession},

	// admin.go
	{"GET /admin", (*Site).admin},
	{"POST /admin/members", (*Site).invite},
	{"POST /admin/members/{id}/remove", (*Site).removeMember},
	{"POST /admin/{list}/{id}/end", (*Site).endCredential},
	// tour.go
	{"POST /tour/close", (*Site).closeTour},

	// docs.go
	{"GET /docs", (*Site).docs},
}

// addRoutes adds pages, static files, and the API for all other paths.
func (s *Site) addRoutes() {
	for _, r := range routes {
		s.mux.Handle(r.pattern, crossOrigin.Handler(s.serve(r.handle)))
		if path, ok := strings.CutPrefix(r.pattern, "GET "); ok {
			s.paths[path] = true
		}
	}
	s.mux.Handle("GET "+s.assets.prefix, s.assets)
	s.mux.HandleFunc("GET /manifest.webmanifest", s.manifest)
	s.mux.HandleFunc("GET "+workerPath, s.pushWorker)
	s.mux.HandleFunc("/", s.serveAPI)
}

// crossOrigin rejects forms that were sent by pages of other sites.
var crossOrigin = http.NewCrossOriginProtection()

// serve calls a handler for a signed-in person and writes its response.
func (s *Site) serve(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.newVisit(w, r)
		answer, err := s.respond(v, handle)
		if err == nil {
			err = answer.write(s, v)
		}
		if err != nil {
			s.writeError(v, err)
		}
	})
}

func (s *Site) respond(v *visit, handle handler) (response, error) {
	if err := v.ParseForm(); err != nil {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.t("error.form")}
	}
	var err error
	if v.Me, err = v.api.Me(v.ctx()); err != nil {
		return nil, err
	}
	return handle(s, v)
}

// home leads to the inbox, or to the chat.
func (s *Site) home(v *visit) (response, error) {
	if s.config.Chat && v.onlyChats() {
		return redirect{To: "/chat"}, nil
	}
	return redirect{To: "/inbox"}, nil
}

// serveAPI passes a request to the API. A browser gets a page instead of a problem if it looks for
// a page that does not exist.
func (s *Site) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") || strings.HasPrefix(r.URL.Path, "/api/") {
		s.config.API.ServeHTTP(w, r)
		return
	}
	s.config.API.ServeHTTP(&notFoundWriter{ResponseWriter: w, page: func() {
		v := s.newVisit(w, r)
		v.Me, _ = v.api.Me(v.ctx()) // only for the navigation
		s.writeError(v, errNotFound)
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
