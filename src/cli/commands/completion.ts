import { readable, writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { bash } from '../completion/bash.js'
import { fish } from '../completion/fish.js'
import { zsh } from '../completion/zsh.js'

const scripts = new Map([
  ['bash', bash],
  ['zsh', zsh],
  ['fish', fish],
])

/** Prints what makes a shell complete the commands. */
export async function completion(shell: string, io: Io): Promise<void> {
  const script = scripts.get(shell)
  if (script === undefined) throw refuse(shell, io)
  await writeAnswer(io, script, 'Run it again')
}

function refuse(shell: string, { env }: Io): PlantsError {
  const [own = ''] = /[^/]*$/.exec(env['SHELL'] ?? '') ?? []
  const hint = `For example: plants completion ${scripts.has(own) ? own : 'bash'}. How to install it: plants completion --help`
  if (shell === '') return new PlantsError('malformed', 'completion needs a shell: bash, zsh or fish', { hint })
  return new PlantsError('malformed', `There is no completion for ${readable(shorten(shell))}, only for bash, zsh and fish`, { hint })
}
