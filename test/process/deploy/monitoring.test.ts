import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isHere } from '../../helpers/programs.js'
import { serve } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const hasPromtool = isHere('promtool')
const alerts = readFileSync(join(deploy, 'alerts.yaml'), 'utf8')
const dashboard = JSON.parse(readFileSync(join(deploy, 'dashboard.json'), 'utf8')) as {
  panels: { targets: { expr: string }[] }[]
}
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

describe('monitoring', () => {
  test('uses only metrics that the service exports', async () => {
    const exported = await exportedMetrics()
    const used = [alerts, ...expressions].map((text) => text.match(/\b(?:plants|process|nodejs)_\w+/g) ?? [])
    expect(used.filter((names) => names.length === 0)).toEqual([])
    expect(used.flat().filter((name) => !exported.has(name))).toEqual([])
  })

  test.skipIf(!hasPromtool)('has expressions that Prometheus accepts (needs prometheus)', () => {
    const rules = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    const file = join(temporaryFolder(), 'panels.json')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
    promtool('check', 'config', join(deploy, 'prometheus.yaml'))
    promtool('check', 'rules', file)
  })

  test.skipIf(!hasPromtool)('raises each alert, and none while all is well (needs prometheus)', () => {
    const names = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
    expect(Object.keys(troubles).toSorted()).toEqual(names.toSorted())
    const well = {
      interval: '1m',
      input_series: series(healthy),
      alert_rule_test: names.map((alertname) => ({ eval_time: '20m', alertname })),
    }
    const ill = Object.entries(troubles).map(([alertname, values]) => {
      const expr = `count by (alertname) (ALERTS{alertname="${alertname}", alertstate="firing"})`
      const isRaised = { expr, eval_time: '20m', exp_samples: [{ labels: `{alertname="${alertname}"}`, value: 1 }] }
      return { interval: '1m', input_series: series({ ...healthy, ...values }), promql_expr_test: [isRaised] }
    })
    const file = join(temporaryFolder(), 'test.json')
    writeFileSync(file, JSON.stringify({ rule_files: [join(deploy, 'alerts.yaml')], tests: [well, ...ill] }))
    promtool('test', 'rules', file)
  })
})

/** A value a minute of each series, in the notation of promtool: start+step x times. */
type Values = Record<string, string>

/** A series of the service. */
const of = (name: string, labels = '') => `${name}{${labels}instance="node1", job="plants"}`
const requests = (outcome: string) => of('plants_requests_total', `outcome="${outcome}", `)
const within = (seconds: string) => of('plants_request_duration_seconds_bucket', `outcome="created", le="${seconds}", `)
const healthy: Values = {
  [of('up')]: '1x30',
  [requests('created')]: '0+600x30',
  [within('0.1')]: '0+600x30',
  [within('5')]: '0+600x30',
  [within('+Inf')]: '0+600x30',
  [of('plants_queue_depth')]: '5x30',
  [of('process_start_time_seconds')]: '1x30',
  [of('process_cpu_seconds_total')]: '0+6x30',
  [of('process_open_fds')]: '20x30',
  [of('process_max_fds')]: '1000x30',
}
/** What differs when an alert must be raised, 20 minutes after the start. */
const troubles: Record<string, Values> = {
  PlantsDown: { [of('up')]: '1x10 0x20' },
  PlantsOutcomeUnknown: { [requests('500')]: '_x14 1x15' },
  PlantsUnavailable: { [requests('503')]: '0+10x30' },
  PlantsQueueLong: { [of('plants_queue_depth')]: '2000x30' },
  PlantsSlow: { [within('0.1')]: '0x30', [within('5')]: '0x30' },
  PlantsTokensRejected: { [requests('401')]: '0+120x30' },
  PlantsRestarts: { [of('process_start_time_seconds')]: '1x10 2 3 4 5x17' },
  PlantsCpuBound: { [of('process_cpu_seconds_total')]: '0+59x30' },
  PlantsFilesRunOut: { [of('process_open_fds')]: '900x30' },
}

function series(values: Values) {
  return Object.entries(values).map(([name, text]) => ({ series: name, values: text }))
}

function promtool(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
}

/** The names of all series of /metrics. */
async function exportedMetrics(): Promise<Set<string>> {
  const { log } = await serve(['--admin-port', '0'])
  const text = await (await fetch(`${log.find(({ admin }) => admin)?.['admin']}/metrics`)).text()
  const suffixes: Record<string, string[]> = {
    histogram: ['_bucket', '_sum', '_count'],
    summary: ['', '_sum', '_count'],
  }
  const types = text.matchAll(/^# TYPE (\w+) (\w+)$/gm)
  return new Set(
    Array.from(types, ([, name = '', type = '']) => (suffixes[type] ?? ['']).map((suffix) => name + suffix)).flat(),
  )
}
