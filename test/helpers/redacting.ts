import { expect } from 'vitest'
import { type RunOptions, withUsual } from './run.js'
import type { World } from './world.js'

// Each token holds "s3cret", at its beginning and at its end, so that a part of it is found, too.

export const short = 's3cret-of-env-s3cret'
/** As long as those of `plants tokens create`: too long for a message, which then shows its beginning. */
export const long = `plants_s3cret-${'0123456789'.repeat(3)}-s3cret`
export const savedAt = '2026-01-02T03:04:05.678Z'

/** Runs a command in text and in JSON, with traces, which show the most; returns all that was on stderr. */
export async function everyWay(
  user: World,
  args: string | string[],
  options: RunOptions = {},
): Promise<string> {
  const words = [...(typeof args === 'string' ? args.split(' ') : args), '--verbose']
  const text = await user.run(withUsual({ '--output': 'text' }, words), options)
  const json = await user.run(withUsual({ '--output': 'json' }, words), options)
  const shown = text.err + json.err
  expect(shown).not.toContain('s3cret')
  return shown
}

export function linesOf(text: string): string[] {
  return text.trim().split(/\n\s*/)
}
