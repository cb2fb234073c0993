package analytics

// rowCount becomes a row.
type rowCount struct {
	counts           Row   // without its times
	waited, oldest   int64 // milliseconds
	toView, toDecide spread
}

func newRowCount(l limits) *rowCount {
	return &rowCount{toView: spread{most: l.exact}, toDecide: spread{most: l.exact}}
}

func (c *rowCount) take(r RequestFacts, now int64) {
	c.counts.count(r)
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

func (c *rowCount) row(name string) Row {
	row := c.counts
	row.Name, row.ToView, row.ToDecide = name, c.toView.times(), c.toDecide.times()
	row.Waited, row.OldestOpen = hours(c.waited), seconds(c.oldest)
	return row
}

func rowOf(name string, c *rowCount) Row { return c.row(name) }

func (row *Row) count(r RequestFacts) {
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
	case "escape":
		row.Escaped++
	case "withdraw":
		row.Withdrawn++
	}
	row.Asked += min(r.Asked, 1)
	row.Paged += min(r.Paged, 1)
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }

func hours(millis int64) float64 { return seconds(millis) / 3600 }
