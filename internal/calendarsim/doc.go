// Package season has no code of its own, only tests: months of traffic with simulated approvers, on a fake clock.
//
// Agents start runs that want to pay, to drop and to know things. Rules allow, deny or ask; routes tell people in three time zones, remind
// them, page, and give up. The people have working hours, take their time, are ill, and make mistakes: they click twice, click on what is no
// longer current, vote on what is not theirs, change their minds. Meanwhile executors are restarted, killed, and all down for hours. Some scenes
// are planned, so that no season goes without them: somebody votes and leaves the group before the last vote comes; limits of how much and how
// often are reached, by what rules allow and by what people approve.
//
//	agents ──start──▶ executors (1 to 3, on one store) ──effects──▶ sink
//	                   ▲        │ notices
//	                   │        ▼
//	                 people ◀── channels
//
// Beside them stands a model that knows nothing of packages desk and policy: what every person did and was told, what the sink saw, what the
// channels were handed. It foretells what becomes of each word, counts quorums by trying everybody out, and works out by the minute when each
// step of each route has to come. In the end it is compared with the store, the audit log and the report.
//
// Time is that of testing/synctest: it goes to the next event, a person's or a timer's, as soon as nobody has anything to do. One seed makes
// one season, as far as goroutines that run at once allow; a failure prints it, and FERMATA_SEASON_SEED repeats it. FERMATA_SOAK=1 makes it
// 100 000 requests.
package calendarsim
