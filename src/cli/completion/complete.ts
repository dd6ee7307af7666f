import type { SavedSettings } from '../../config/file.js'
import { topics } from '../help/topics.js'
import type { CommandSpec, Flag, Term } from '../spec.js'
import { type Candidate, nothing, type Offer, offer } from './offer.js'
import { flagCalled, flagsAt, mayRepeat, namesOf, type Reading, readWords, takesValue } from './read-words.js'
import { type Circumstances, offerValues } from './values.js'

/**
 * What the last word can become.
 *
 * @param words those behind the name of the program, up to the cursor, without what a shell takes away; the last may be empty
 */
export async function complete(words: readonly string[], saved: () => Promise<SavedSettings>): Promise<Offer> {
  const text = words.at(-1) ?? ''
  const reading = readWords(words.slice(0, -1))
  const { operands, asking } = reading
  if (asking) return offerValues(asking.values, { text, operands, saved })
  if (reading.isOver) return nothing
  const [, name, value = ''] = /^(--[^=]+=)(.*)$/s.exec(text) ?? []
  if (name !== undefined) return offerBehind(name, { text: value, operands, saved }, reading)
  if (text.startsWith('-')) return offer(flagCandidates(reading, text))
  return offerWords(reading, { text, operands, saved })
}

/** The values of `--flag=`. */
async function offerBehind(name: string, circumstances: Circumstances, reading: Reading): Promise<Offer> {
  const flag = flagCalled(name.slice(0, -1), reading)
  if (!flag || !takesValue(flag)) return nothing
  const values = await offerValues(flag.values, circumstances)
  return { ...values, prefix: `${name}${values.prefix}` }
}

async function offerWords(reading: Reading, circumstances: Circumstances): Promise<Offer> {
  const command = reading.path.at(-1)
  if (reading.isHelp) return offer(helpCandidates(reading))
  if (command?.commands) return offer(reading.operands.length > 0 ? [] : [...command.commands.map(candidateOf), helpCandidate])
  const argument = argumentAt(command?.arguments ?? [], reading.operands.length)
  if (argument) return offerValues(argument.values, circumstances)
  return circumstances.text === '' ? offer(flagCandidates(reading, '--')) : nothing
}

function argumentAt(taken: Term[], index: number): Term | undefined {
  const last = taken.at(-1)
  return taken[index] ?? (last && mayRepeat(last) ? last : undefined)
}

function helpCandidates({ path, operands }: Reading): Candidate[] {
  if (operands.length > 0) return []
  const pages = path.length === 1 ? topics.map(({ name, meaning }) => ({ word: name, meaning })) : []
  return [...(path.at(-1)?.commands ?? []).map(candidateOf), ...pages]
}

function candidateOf({ name, summary, description }: CommandSpec): Candidate {
  return { word: name, meaning: summary ?? description }
}

const helpCandidate: Candidate = { word: 'help', meaning: 'show the help of a command' }

/** Long flags; a short one only to who has begun to write it. */
function flagCandidates(reading: Reading, text: string): Candidate[] {
  const isShort = /^-[^-]/.test(text)
  const isOffered = (flag: Flag) => !reading.given.has(flag) || mayRepeat(flag)
  return flagsAt(reading)
    .filter(isOffered)
    .flatMap((flag) => namesOf(flag).map((word) => ({ word, meaning: flag.meaning })))
    .filter(({ word }) => word.startsWith('--') !== isShort)
}
