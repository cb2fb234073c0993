package settings

import (
	"net/http"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
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
func pushOf(v *page.Visit) (*pushData, error) {
	key, err := v.API.PushKey(v.Context())
	if err != nil {
		if status := page.ProblemOf(err).Status; status == http.StatusNotFound || status == http.StatusForbidden {
			return nil, nil
		}
		return nil, err
	}
	items, err := v.API.PushSubscriptions(v.Context())
	return &pushData{Items: items, Key: key.PublicKey, Worker: page.WorkerPath}, err
}

// addBrowser adds the browser that sends the form.
func addBrowser(v *page.Visit) (page.Response, error) {
	added := api.AddPushSubscription{
		Name: browserName(v.UserAgent()), Endpoint: v.PostFormValue("endpoint"), Keys: api.PushKeys{P256DH: v.PostFormValue("p256dh"), Auth: v.PostFormValue("auth")},
	}
	if added.Endpoint == "" {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.T("push.script")}
	}
	if _, err := v.API.AddPushSubscription(v.Context(), added); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me#push", Note: "note.pushon"}, nil
}

func removeBrowser(v *page.Visit) (page.Response, error) {
	err := v.API.RemovePushSubscription(v.Context(), v.PathValue("id"))
	if err != nil && page.ProblemOf(err).Status != http.StatusNotFound { // it may have ended by itself
		return nil, err
	}
	return page.Redirect{To: "/me#push", Note: "note.pushoff"}, nil
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
