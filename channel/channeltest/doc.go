// Package channeltest has the tests that every [channel.Channel] passes.
//
//	channeltest.Run(t, func(t testing.TB) channeltest.Subject {
//		return channeltest.Subject{Channel: c, To: "ops", Unknown: "other", Copies: copies, Fail: fail}
//	})
//
// The suite uses a channel only through the port. It sees what a person sees through
// [Subject.Copies], and makes the peer fail through [Subject.Fail]. A channel declares what it
// cannot do; Run logs it.
package channeltest
