package fermata

// Evidence is something that an approver should see before they decide: a plan, a diff, the number
// of affected rows, a link to a dashboard. It is part of what is shown, so a decision is void if it
// has changed. Read it inside [Do] if it can differ when the node runs again.
type Evidence struct {
	// Title says what it is, for example "Plan". Source says where it comes from.
	Title  string `json:"title"`
	Source string `json:"source,omitempty"`
	// Text is plain text of any length. It is never rendered as markup.
	Text string `json:"text,omitempty"`
	// URL is an https link to more.
	URL string `json:"url,omitempty"`
}
