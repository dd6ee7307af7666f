import type { Io } from '../platform/io.js'

/** Tells people on stderr what each phase of a run took, in milliseconds, for who makes starts faster. */
export async function writeStartProfile({ phases, stderr, now }: Io): Promise<void> {
  const ends: [string, number][] = [...phases, ['end', now()]]
  const rows = ends.map(([phase, end], at) => [phase, end - (ends[at - 1]?.[1] ?? 0), end] as const)
  const lines = rows.map(([phase, took, end]) => `${phase.padEnd(12)} ${took.toFixed(1).padStart(7)} ${end.toFixed(1).padStart(7)}\n`)
  await stderr.write(`${'PHASE'.padEnd(12)} ${'MS'.padStart(7)} ${'SINCE 0'.padStart(7)}\n${lines.join('')}`)
}
