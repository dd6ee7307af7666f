import { type ExitCode, exitCodes } from '../../platform/errors.js'
import { paragraph, rowsOf } from './layout.js'

/** When a run ends with each of them; the README has the same words. */
const meanings: Record<ExitCode, string> = {
  0: 'done; also when the reader of a pipe has left, and when serve was stopped',
  1: 'the store refused: the id or the key is taken, no plant has this id, or a service had a reason of its own; a setting has no value; doctor found something',
  2: 'wrong usage or invalid input; nothing was sent to a store',
  3: 'no token, or one that is not accepted',
  4: 'nothing was stored: the store could not be opened, reached, read or written, or was in use for too long',
  5: 'whether the plant is stored is not known: the disk failed in the middle of a commit, or a service did not answer as it should',
  6: 'an import in which some plants were refused; the others are created',
  70: 'a mistake in this program',
  74: 'the work is done, but the answer could not be written, for example to a full disk behind stdout or --out; or the settings, or a backup, could not be written',
  130: 'interrupted by Ctrl-C (SIGINT), or a question answered with no',
  143: 'terminated (SIGTERM)',
}

/** The page `plants help exit-codes`. */
export async function exitCodesPage(width: number): Promise<string> {
  const rows = exitCodes().map(([code, errors]) => ({ term: String(code), meaning: `${meanings[code]}${errorsIn(code, errors)}` }))
  const about = 'What a run ends with, and what an error is then called in JSON. It is told on stderr, with what to do next.'
  return `${paragraph(about, width)}\n${rowsOf(rows, width)}\nSee also: plants help formats\n`
}

function errorsIn(code: ExitCode, errors: number[]): string {
  if (errors.length === 0) return ''
  return ` (error ${errors.join(', ')}${code === 6 ? ', or what all were refused with' : ''})`
}
