// Runs the suite with everything that repeats so many times as long: npm run soak -- 20
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

const rounds = process.argv[2] ?? '10'

if (/^[1-9]\d*$/.test(rounds)) {
  const vitest = createRequire(import.meta.url).resolve('vitest/vitest.mjs')
  const args = [vitest, 'run', '--config', 'test/vitest.config.mts', '--project', 'suite']
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env: { ...process.env, PLANTS_SOAK: rounds } })
  process.exitCode = status ?? 1
} else {
  process.stderr.write(`npm run soak -- ROUNDS: ROUNDS must be a whole number from 1 up, but was ${rounds}\n`)
  process.exitCode = 2
}
