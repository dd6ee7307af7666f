// Runs the suite with everything that repeats so many times as long, or the part of it that has a name: npm run soak --
// 20 kill
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const [rounds = '10', ...names] = process.argv.slice(2)

if (/^[1-9]\d*$/.test(rounds)) {
  const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
  const args = [
    vitest,
    'run',
    '--config',
    join(import.meta.dirname, 'vitest.config.mts'),
    '--project',
    'suite',
    ...names,
  ]
  const { status } = spawnSync(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, PLANTS_SOAK: rounds },
  })
  process.exitCode = status ?? 1
} else {
  process.stderr.write(
    `npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was ${rounds}\n`,
  )
  process.exitCode = 2
}
