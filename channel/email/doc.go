// Package email sends requests by e-mail.
//
// A message has the same facts in text and HTML, and a link to a page that shows the request and
// asks for a confirmation. Opening the link decides nothing, so that programs which follow links
// in messages do no harm. Replies are not read. The link is signed and belongs to one address and
// one request, and sending its form twice decides once. It counts as the person who linked the
// address to themselves, with the authentication strength of a linked account. If a rule requires
// more, or none does and the risk is high, the page leads to the inbox. A browser in which another
// person is signed in does not get the page.
//
// A sent message cannot be changed. When the request ends, a second message in the same thread
// tells the outcome. Messages that a mail server refuses are visible as failed deliveries.
package email
