package season

// What is known to be wrong, and is passed over until it is put right: then its line goes.
const (
	// Escape withdraws in the store what else the run asks, and not in the requests: they stay open for ever for those who look at them.
	escapeLeavesSiblings = false
)
