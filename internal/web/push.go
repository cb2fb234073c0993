package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/fermata-go/fermata/api"
)

const (
	// workerPath is the path of the service worker. Its folder is the part of the site that it
	// serves, and browsers remember it.
	workerPath = "/push-worker.js"
	// workerPolicy is the content security policy of the service worker.
	workerPolicy = "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// workerTypes is the Trusted Types policy of the script that registers it.
	workerTypes = "fermata-worker"
)

// pushData is the section of the profile about notifications in browsers.
type pushData struct {
	Items []api.PushSubscription
	// Key is the key of the server, Worker the path of the service worker.
	Key, Worker string
}

// Problems are the messages of the script.
func (d *pushData) Problems() []string {
	return []string{"insecure", "unsupported", "blocked", "failed"}
}

// pushOf returns the section, or nil if the server does not notify browsers.
func pushOf(v *visit) (*pushData, error) {
	key, err := v.api.PushKey(v.ctx())
	if err != nil {
		if status := problemOf(err).Status; status == http.StatusNotFound || status == http.StatusForbidden {
			return nil, nil
		}
		return nil, err
	}
	items, err := v.api.PushSubscriptions(v.ctx())
	return &pushData{Items: items, Key: key.PublicKey, Worker: workerPath}, err
}

// addBrowser adds the browser that sends the form.
func (s *Site) addBrowser(v *visit) (response, error) {
	added := api.AddPushSubscription{
		Name: browserName(v.UserAgent()), Endpoint: v.PostFormValue("endpoint"), Keys: api.PushKeys{P256DH: v.PostFormValue("p256dh"), Auth: v.PostFormValue("auth")},
	}
	if added.Endpoint == "" {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.t("push.script")}
	}
	if _, err := v.api.AddPushSubscription(v.ctx(), added); err != nil {
		return nil, err
	}
	return redirect{To: "/me#push", Note: "note.pushon"}, nil
}

func (s *Site) removeBrowser(v *visit) (response, error) {
	err := v.api.RemovePushSubscription(v.ctx(), v.PathValue("id"))
	if err != nil && problemOf(err).Status != http.StatusNotFound { // it may have ended by itself
		return nil, err
	}
	return redirect{To: "/me#push", Note: "note.pushoff"}, nil
}

// browserName names a browser by its User-Agent, such as Firefox on Linux.
func browserName(agent string) string {
	first := func(names [][2]string, otherwise string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return otherwise
	}
	// Edge and Opera also name Chrome, and Chrome names Safari
	browser := first([][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}}, "Browser")
	system := first([][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}, "")
	if system == "" {
		return browser
	}
	return browser + " on " + system
}

// pushWorker serves the service worker, with its icon and text.
func (s *Site) pushWorker(w http.ResponseWriter, _ *http.Request) {
	icon, _ := s.assets.url("icon-192.png") // a test checks the files
	config, err := json.Marshal(map[string]string{"icon": icon, "fallback": s.texts.text("push.fallback")})
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
