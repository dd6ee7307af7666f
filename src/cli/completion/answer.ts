import { readSettings, type SavedSettings } from '../../config/file.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { redact } from '../../platform/redact.js'
import { complete } from './complete.js'

/**
 * Answers the script of a shell: a line that says which files the shell is to offer (`none`, `any`, or endings) and, behind a tab,
 * what stands in front of each candidate; then a line for each candidate, its meaning behind a tab.
 */
export async function answerCompletion(words: string[], io: Io): Promise<void> {
  const { files, prefix, candidates } = await complete(words, () => savedSettings(io))
  const first = `${typeof files === 'string' ? files : files.join(' ')}\t${prefix}\n`
  const lines = candidates.map(({ word, meaning }) => `${word}\t${meaning}\n`)
  await writeAnswer(io, redact([first, ...lines].join(''), io), 'Run it again')
}

/** Settings that are broken are told by the next command; somebody who is still writing one only sees less. */
async function savedSettings(io: Io): Promise<SavedSettings> {
  try {
    return (await readSettings(io)).saved
  } catch (error) {
    if (error instanceof PlantsError) return { version: 1 }
    throw error
  }
}
