// Package web serves the web inbox: server-rendered pages for approvers, engineers and auditors.
//
//	api, err := server.New(...)
//	site, err := web.New(web.Config{API: api})
//	http.ListenAndServe(addr, site) // pages, and the API for all other paths
//
// Pages never bypass the JSON API. Each page calls it in process through package client, with the
// session cookie and the address of the browser. So authorization, visibility, masking,
// idempotency, audit records and errors are those of the API.
//
// # Packages
//
// Package page has the shell that all pages share, texts their texts by language, fields the forms
// that are generated from a schema. The pages are grouped by area: requests, inbox, runs, chat,
// governance, auditlog, reports and settings. Each area lists its paths in a function Routes.
//
// # Add a page
//
// A page "things" consists of these parts:
//
//  1. things.go in the package of its area has the handler: func things(v *page.Visit)
//     (page.Response, error). It calls v.API (a *client.Client) and returns page.Page{Name:
//     "things", Title: …, Data: …}. An error is returned as it is: an *api.Problem becomes the
//     error page of its status.
//  2. templates/things.html defines the template "main". Inside it, the data is .Data, the
//     signed-in person .Me. Shared parts are in templates/parts and are called by name.
//  3. Routes of the area has one line per path. A new area is also listed in routesOf (web.go).
//  4. Package texts has the texts. Templates contain no words of their own, only
//     {{t "things.title"}}, {{t "key" arg …}} or, with a number, {{tn "things.count" .N}}. Go code
//     calls v.T and v.TN.
//  5. static/pages/things.css has styles that no other page uses, in @layer pages. All CSS files
//     are served as one.
//  6. static/things.js, if the page needs one, is a module that defines custom elements; the
//     page names it in page.Page.Scripts. Pages must work without it.
//  7. things_test.go renders the page in a whole site; see the harness in site_test.go.
//
// The navigation (page/nav.go) shows an entry as soon as its path has a route.
//
// # Untrusted text
//
// Everything that comes from an agent, a model or another person is untrusted. Templates print it
// with {{mark .Text}} (one paragraph), {{markLine .Text}} (one line) or {{value .JSON}} (a JSON
// value), which show control, bidirectional, invisible and look-alike characters as codes. A plain
// {{.Text}} is for ids and for words of this package. Text that a model wrote is never inside an
// element with the attribute data-fact.
//
// # Forms
//
// Forms are plain POST forms that work without JavaScript. A handler of a POST request reads
// v.FormValue, calls the API and returns page.Redirect{To: …} (303). If the API rejects the input,
// it returns the page of the form again with the problem and with everything that was typed. Forms
// contain {{idem}}, a hidden idempotency key.
//
// # Content security policy
//
// There are no inline scripts and styles, so no style attributes, and no innerHTML: live fragments
// use setHTML.
package web
