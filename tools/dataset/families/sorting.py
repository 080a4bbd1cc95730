def specs(): return []
