import { jsonLine, type Style, styleFor, writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { visible } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { redact } from '../../platform/redact.js'
import { mayColor, outputFormat } from '../context.js'
import type { GlobalFlags } from '../flags.js'
import type { Finding } from './doctor-checks.js'

export async function doctor(flags: GlobalFlags, io: Io): Promise<void> {
  const { examine } = await import('./doctor-checks.js')
  const output = await outputFormat(flags.output, io)
  const style = await styleFor(mayColor(io.stdout, flags, io))
  let failures = 0
  for await (const finding of examine(flags, io)) {
    if (finding.state === 'failed') failures += 1
    await writeAnswer(io, output === 'json' ? jsonLine(finding, io) : redact(lineOf(finding, style), io), 'Run it again')
  }
  if (failures > 0) {
    throw new PlantsError('unwell', failures === 1 ? 'One check failed' : `${failures} checks failed`, { hint: 'Each says what to do' })
  }
}

function lineOf({ check, state, message, hint }: Finding, style: Style): string {
  const shown = { ok: style.faint('ok     '), warning: style.strong('warning'), failed: style.bad('failed ') }[state]
  const advice = hint === undefined ? '' : `\n         ${style.faint(visible(hint))}`
  return `${shown}  ${style.strong(visible(check))}: ${visible(message)}${advice}\n`
}
