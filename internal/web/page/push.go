package page

import (
	"encoding/json"
	"net/http"

	"github.com/fermata-go/fermata/internal/language"
)

const (
	// WorkerPath is the path of the service worker. Its folder is the part of the site that it
	// serves, and browsers remember it.
	WorkerPath = "/push-worker.js"
	// workerPolicy is the content security policy of the service worker.
	workerPolicy = "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// WorkerTypes is the Trusted Types policy of the script that registers it.
	WorkerTypes = "fermata-worker"
)

// pushWorker serves the service worker, with its icon and text.
func (s *Shell) pushWorker(w http.ResponseWriter, r *http.Request) {
	icon, _ := s.assets.url("icon-192.png") // a test checks the files
	config, err := json.Marshal(map[string]string{"icon": icon, "fallback": s.Config.Languages[language.Of(r)].Text("push.fallback")})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Content-Security-Policy", workerPolicy)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte("const config = " + string(config) + ";\n")) // a disconnected client does not read it
	_, _ = w.Write(s.assets.files["push-worker.js"].plain)
}
