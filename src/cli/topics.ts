/*
 * The pages of `docs` for users, which `plants help` prints. They have 100 KB, more than half of
 * what a `plants create` loads, so this file is imported only where it is used.
 */
import backups from '../../docs/backups.md?raw'
import httpApi from '../../docs/http-api.md?raw'
import importing from '../../docs/importing.md?raw'
import install from '../../docs/install.md?raw'
import monitoring from '../../docs/monitoring.md?raw'
import moreMachines from '../../docs/more-machines.md?raw'
import myFirstList from '../../docs/my-first-list.md?raw'
import plants from '../../docs/plants.md?raw'
import postgresql from '../../docs/postgresql.md?raw'
import programs from '../../docs/programs.md?raw'
import proxies from '../../docs/proxies.md?raw'
import recipes from '../../docs/recipes.md?raw'
import runAService from '../../docs/run-a-service.md?raw'
import scripting from '../../docs/scripting.md?raw'
import security from '../../docs/security.md?raw'
import settings from '../../docs/settings.md?raw'
import tables from '../../docs/tables.md?raw'
import troubleshooting from '../../docs/troubleshooting.md?raw'
import useAService from '../../docs/use-a-service.md?raw'
import { formatMarkdown } from '../output/markdown.js'

/** The pages by their topics, in the order of the README. */
const pages = {
  install,
  'my-first-list': myFirstList,
  plants,
  importing,
  tables,
  backups,
  settings,
  recipes,
  troubleshooting,
  scripting,
  programs,
  'use-a-service': useAService,
  'http-api': httpApi,
  'run-a-service': runAService,
  proxies,
  monitoring,
  postgresql,
  'more-machines': moreMachines,
  security,
}

export type Topic = keyof typeof pages

export function isTopic(word: string): word is Topic {
  return Object.hasOwn(pages, word)
}

/** Lists the topics with the titles of their pages. */
export function listTopics(): [topic: string, title: string][] {
  return Object.entries(pages).map(([topic, page]) => [topic, page.slice(2, page.indexOf('\n'))])
}

export function formatPage(topic: Topic, width: number): string {
  return formatMarkdown(pages[topic], width, formatLink)
}

/** Names the command that prints the page of a link. Another link is only its label. */
function formatLink(label: string, target: string): string {
  const [, topic = ''] = /^([\w-]+)\.md/.exec(target) ?? []
  return isTopic(topic) ? `${label} (plants\u00a0help\u00a0${topic})` : label
}
