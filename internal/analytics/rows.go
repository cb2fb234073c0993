package analytics

// rowCounter counts the requests of a row.
type rowCounter struct {
	counts           Row   // without its percentiles
	waited, oldest   int64 // milliseconds
	toView, toDecide quantiles
}

func newRowCounter(l limits) *rowCounter {
	return &rowCounter{toView: quantiles{most: l.durations}, toDecide: quantiles{most: l.durations}}
}

func (c *rowCounter) add(r RequestIndex, now int64) {
	c.counts.add(r)
	if r.Viewed > 0 {
		c.toView.add(r.Viewed - r.Created)
	}
	end := r.Decided
	if end == 0 {
		end = now
		c.oldest = max(c.oldest, end-r.Created)
	} else if r.Outcome == "approve" || r.Outcome == "reject" || r.Outcome == "answer" {
		c.toDecide.add(end - r.Created)
	}
	c.waited += end - r.Created
}

func (c *rowCounter) row(name string) Row {
	row := c.counts
	row.Name, row.ToView, row.ToDecide = name, c.toView.percentiles(), c.toDecide.percentiles()
	row.WaitedHours, row.OldestOpen = hours(c.waited), seconds(c.oldest)
	return row
}

func newRow(name string, c *rowCounter) Row { return c.row(name) }

func (row *Row) add(r RequestIndex) {
	row.Requests++
	switch r.Outcome {
	case "":
		row.Open++
	case "approve":
		row.Approved++
		row.Edited += r.Edited
	case "reject":
		row.Rejected++
	case "answer":
		row.Answered++
	case "expire":
		row.Expired++
	case "abandon":
		row.Abandoned++
	case "withdraw":
		row.Withdrawn++
	}
	row.Clarified += min(r.Clarifications, 1)
	row.Paged += min(r.Paged, 1)
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }

func hours(millis int64) float64 { return seconds(millis) / 3600 }
