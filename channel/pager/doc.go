// Package pager pages people through PagerDuty or Alertmanager when a route says so.
//
// A page is triggered by the step of a route, and resolved when the request is decided, expires or
// is withdrawn. All pages of one request have the same key, so that the pager shows one incident.
// A page leaves the organisation's systems. It names the action, the rules and the time that the
// request has waited, and links to the inbox. It never contains arguments.
package pager
