package texts

// pushTexts are the texts of notifications in browsers.
var pushTexts = Translation{
	"push.title":       "Notifications in browsers",
	"push.lead":        "A notification shows the facts of a request. A click opens the request; you decide there.",
	"push.switch":      "Notify this browser",
	"push.here":        "This browser",
	"push.added":       "added",
	"push.remove":      "Remove",
	"push.remove.one":  "Remove %s",
	"push.script":      "Notifications need JavaScript.",
	"push.insecure":    "Browsers allow notifications only for https addresses.",
	"push.unsupported": "This browser does not support notifications. On an iPhone or iPad, add Fermata to the home screen and open it there.",
	"push.blocked":     "Notifications of this site are blocked. Allow them in the settings of your browser, then reload this page.",
	"push.failed":      "The browser could not turn on notifications. Its push service may be unreachable; try again.",
	"push.fallback":    "There is news in your inbox",

	"note.pushon":  "This browser is notified.",
	"note.pushoff": "The browser is no longer notified.",
}
