// Package calendarsim contains only tests: months of traffic with simulated approvers, on a fake
// clock.
//
// Agents start runs that pay, delete and ask. Rules allow, deny or ask. Routes notify people in
// three time zones, remind, page and expire. The people have working hours, take their time, are
// ill, and make mistakes: they click twice, use outdated pages, vote without permission, and change
// their minds. Executors are restarted, killed, and down for hours. Some scenarios are scheduled in
// every simulation: a voter who leaves the group before the last vote, and limits on amounts and
// rates that are reached by allowed and by approved actions.
//
//	agents ──start──▶ executors (1 to 3, on one store) ──effects──▶ sink
//	                   ▲        │ notices
//	                   │        ▼
//	                 people ◀── channels
//
// A model that does not use packages desk and policy runs alongside. It knows what every person did
// and was told, what the sink saw, and what the channels got. It predicts the result of each
// submission, counts quorums by brute force, and computes by the minute when each route step is
// due. At the end it is compared with the store, the audit log and the report.
//
// Time is that of testing/synctest: it advances to the next event of a person or a timer as soon as
// all goroutines are idle. One seed gives one simulation, as far as concurrent goroutines allow. A
// failure prints the seed, and FERMATA_CALENDARSIM_SEED repeats it. FERMATA_TEST=soak runs 100,000
// requests.
package calendarsim
